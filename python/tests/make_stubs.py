"""Writes ``forebay/_pipes.pyi``: the pipes of this tree as typed methods and functions, from what their plugins say of themselves.

Run it with the package installed, and commit the result: ``python python/tests/make_stubs.py``.
"""

from __future__ import annotations

import json
import keyword
import textwrap
from pathlib import Path
from typing import Any

import forebay as fb

KINDS = {"str": "str", "uint": "int", "int": "int", "float": "float", "bool": "bool", "any": "Any"}
PLACES = 'Literal["threads", "own_thread", "process", "sandboxed"]'
HEAD = '''\
# Written by python/tests/make_stubs.py, from what the plugins say of themselves.
from collections.abc import Sequence
from typing import Any, Literal

from forebay._dataset import Dataset
'''


def main() -> None:
    (Path(__file__).parents[1] / "forebay" / "_pipes.pyi").write_text(text(), encoding="utf-8")


def text() -> str:
    """What the file has."""
    pipes = {name: pipe for name, pipe in sorted(fb.plugins.pipes().items()) if in_tree(name)}
    own = set(vars(fb.Dataset)) | {"files"}
    methods = [method(name, pipe) for name, pipe in pipes.items() if pipe["class"] != "source" and name not in own]
    sources = [function(name, pipe) for name, pipe in pipes.items() if pipe["class"] == "source" and name not in own]
    joins = [function(name, pipe) for name, pipe in pipes.items() if pipe["inputs"][1] != 1 and pipe["class"] != "source"]
    names = sorted(name for name, pipe in pipes.items() if (pipe["class"] == "source" or pipe["inputs"][1] != 1) and name not in own)
    listed = f"__all__ = {json.dumps(names)}\n"
    body = "class Pipes:\n" + "\n".join(textwrap.indent(one, "    ") for one in methods)
    return "\n".join([HEAD, listed, body, *sources, *joins])


def in_tree(name: str) -> bool:
    """Whether it is for people: what functions of Python's are called by is not."""
    return not name.startswith("py_")


def method(name: str, pipe: dict[str, Any]) -> str:
    return define(name, ["self", *parameters(pipe)], pipe)


def function(name: str, pipe: dict[str, Any]) -> str:
    first = ["inputs: Sequence[Dataset] | Dataset"] if pipe["class"] != "source" else []
    return define(name, [*first, *parameters(pipe)], pipe)


def define(name: str, given: list[str], pipe: dict[str, Any]) -> str:
    lines = ",\n    ".join(given)
    doc = [pipe["summary"] + "."]
    doc += [f"{spelt(option['name'])}: {option['doc']}" for option in pipe["options"]]
    shown = "\n\n".join(doc).replace("\\", "\\\\").replace('"""', "'''")
    quoted = '"""' + textwrap.indent(shown, "    ").strip() + ('\n    """' if len(doc) > 1 else '"""')
    return f"def {name}(\n    {lines},\n) -> {gives(pipe)}:\n    {quoted}\n"


def gives(pipe: dict[str, Any]) -> str:
    """A dataset, or one for each output."""
    if not pipe["outputs_option"]:
        return "Dataset"
    return "tuple[Dataset, ...]" if pipe["outputs"] > 1 else "Any"


def parameters(pipe: dict[str, Any]) -> list[str]:
    """The options: those without a default first, then what every pipe has."""
    options = sorted(pipe["options"], key=lambda option: not option["required"])
    given = [f"{spelt(option['name'])}: {kind(option)}{'' if option['required'] else ' = ...'}" for option in options]
    common = ["*", "on_error: str = ..."]
    return [*given, *common, f"on: {PLACES} = ..."]


def kind(option: dict[str, Any]) -> str:
    one = KINDS[option["kind"]]
    if option["choices"]:
        one = "Literal[" + ", ".join(json.dumps(choice) for choice in option["choices"]) + "]"
    if option["list"] == "yes":
        one = f"Sequence[{one}]"
    elif option["list"] != "no":
        one = f"{one} | Sequence[{one}]"
    return f"{one} | None" if option["optional"] else one


def spelt(name: str) -> str:
    return f"{name}_" if keyword.iskeyword(name) else name


if __name__ == "__main__":
    main()
