"""The nodes of a graph, as data: how those of several datasets become one graph."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from forebay import _calls, plugins

if TYPE_CHECKING:
    from forebay._dataset import Dataset

Node = dict[str, Any]


def merge(nodes: list[Node], functions: _calls.Functions, dataset: Dataset, shared: dict[int, str]) -> str:
    """Adds the nodes and functions of a dataset under names that are free, and gives the name of its end.

    A dataset that is there already is read once more: it is a value. But what stands before a pipe with several outputs is read once for all
    of them; ``shared`` knows the names of what was added by these calls.
    """
    names: dict[str, str] = {}
    called: dict[str, str] = {}
    for old, function in dataset._functions.items():
        called[old] = unlike(functions, old, function)
        functions[called[old]] = function
    split = _before_a_split(dataset._nodes)
    for node in dataset._nodes:
        if id(node) in shared and node["name"] in split:
            names[node["name"]] = shared[id(node)]
            continue
        name = free(node["name"], nodes)
        names[node["name"]] = shared[id(node)] = name
        new = {**node, "name": name, "inputs": [_renamed(part, names) for part in node["inputs"]]}
        if node.get("function") in called:
            new["function"] = called[node["function"]]
        nodes.append(node if new == node else new)  # The same one, so that it is known again.
    return _renamed(dataset._end, names)


def _before_a_split(nodes: Iterable[Node]) -> set[str]:
    """The pipes with several outputs, and all that they read."""
    found: set[str] = set()
    for node in reversed(list(nodes)):
        if node["name"] in found or outputs(node) > 1:
            found.add(node["name"])
            found.update(part.partition(".")[0] for part in node["inputs"])
    return found


def outputs(node: Node) -> int:
    """How many outputs a node has."""
    pipe = plugins.pipes().get(node["pipe"], {})
    option = pipe.get("outputs_option")
    if not option:
        return int(pipe.get("outputs", 1))
    value = node.get(option, next((one["default"] for one in pipe["options"] if one["name"] == option), None))
    return len(value) if isinstance(value, list) else int(value or 1)


def _renamed(part: str, names: Mapping[str, str]) -> str:
    name, dot, port = part.partition(".")
    return names.get(name, name) + dot + port


def free(name: str, nodes: Iterable[Node]) -> str:
    taken = {node["name"] for node in nodes}
    number, free = 2, name
    while free in taken:
        number, free = number + 1, f"{name}-{number}"
    return free


def unlike(functions: Mapping[str, Any], called: str, function: Any) -> str:
    """The name, with a number where another function has it."""
    number, free = 2, called
    while free in functions and functions[free] is not function:
        number, free = number + 1, f"{called}#{number}"
    return free


def plain(pipe: str, option: str, value: Any) -> Any:
    """An option's value as JSON has it."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (list, tuple)):
        return [plain(pipe, option, one) for one in value]
    if isinstance(value, Mapping):
        return {str(name): plain(pipe, option, one) for name, one in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    item = getattr(value, "item", None)  # A number of NumPy's.
    if callable(item):
        return plain(pipe, option, item())
    raise TypeError(f"{pipe}() option {option!r}: found {type(value).__name__}, expected a type that JSON has")
