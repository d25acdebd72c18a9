"""Writes the pages of ``docs/reference`` about pipes, decoders and the command, from what plugins and the command say of themselves.

Run it with the package installed, and commit the result: ``python python/tests/make_reference.py``.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import make_stubs
from reference_examples import EXAMPLES, GIVES, HOMES, PAGES, SAID, Page

import forebay as fb

FOLDER = Path(__file__).parents[2] / "docs" / "reference"
COMMAND = "python python/tests/make_reference.py"
HEAD = f"<!-- Written by `{COMMAND}`: change what plugins say of themselves. -->\n"
# Lines of pages are this wide at most; those of tables and code may be wider.
WIDTH = 110
CLASSES = {
    "source": "source: it has no input, and one thread at a time reads it",
    "map": "map: one sample in, one out, on all threads or workers at once",
    "flat_map": "flat map: one sample in, any number out, one input sample after the other",
    "flat_map, parallel": "flat map: one sample in, any number out, several input samples at once on all threads or workers",
    "stream": "stream: it sees all samples in order, one call at a time",
}
SHORT = {"source": "source", "map": "map", "flat_map": "flat map", "stream": "stream"}
# The options that pipes inherit from their kind. Their meaning stands on the index page.
INHERITED = ("interleave", "interleave_block")
DASH = "–"

MOST_MAGIC = 8
"""If a decoder has more first bytes than this, half as many are shown."""


def main() -> None:
    for path, page in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(page, encoding="utf-8")


def pages() -> dict[Path, str]:
    """Every generated page by its path."""
    names = {one["name"] for plugin in plugins() for kind in ("pipes", "decoders") for one in plugin[kind]}
    if unknown := SAID.keys() - names:
        raise LookupError(f"files of plugins say something of {sorted(unknown)}, which is no pipe or decoder")
    made = {FOLDER / "pipes" / f"{page.name}.md": pipes_page(page) for page in PAGES}
    made[FOLDER / "pipes" / "index.md"] = index_page()
    made[FOLDER / "decoders.md"] = decoders_page()
    made[FOLDER / "commands.md"] = commands_page()
    return made


def plugins() -> list[dict[str, Any]]:
    """The plugins of this tree."""
    return [one for one in fb.plugins.manifests() if one["name"].startswith("forebay-") and one["name"] != "forebay-python"]


def pipes() -> dict[str, tuple[str, dict[str, Any]]]:
    """The pipes of this tree for people, each with its plugin's name."""
    known = fb.plugins.pipes()
    return {
        pipe["name"]: (plugin["name"].removeprefix("forebay-"), pipe)
        for plugin in plugins()
        for pipe in plugin["pipes"]
        if pipe["name"] in known
    }


# Pipes.


def index_page() -> str:
    rows = [
        [f"[`{name}`]({home(name)}.md#{name})", SHORT[pipe["class"]], plugin, table_text(pipe["summary"])]
        for name, (plugin, pipe) in sorted(pipes().items())
    ]
    subjects = [[f"[{page.title}]({page.name}.md)", table_text(page.summary)] for page in PAGES]
    return "\n".join([HEAD, INDEX, table(["page", "what is on it"], subjects), toctree(), "\n## All pipes\n", table(["pipe", "kind", "plugin", "what it does"], rows)])


def toctree() -> str:
    return "\n".join(["```{toctree}", ":hidden:", *(page.name for page in PAGES), "```"])


INDEX = """# Pipes

A graph is a list of pipes: [the graph language](../../guide/graph.md) says how you write one. Each page below
lists pipes with their options. The command prints the options of a pipe too, also of plugins that are not
part of Forebay:

```sh
forebay plugins show shuffle
```

## How to read an entry

| line | what it says |
|---|---|
| Kind | what the pipe does with samples, and how much of it runs at once |
| Inputs, outputs | how many streams it reads and gives; "1 in, 1 out" unless the entry says otherwise |
| Order | whether samples come out in the order that they came in |
| State | what a [snapshot](../../guide/resume.md) saves of it |
| Leaves out | which option makes it leave out samples on purpose; an [audit](../../guide/audit.md) calls any other missing sample lost |
| Uids | whether a sample keeps its uid, the number that names it in every run |
| Random | when it draws random numbers; for one seed, epoch and sample they are the same in every run |
| Opens | the files for which `forebay head PATH` puts it into a graph by itself |

The first option can be given by position. `uint` is a whole number from 0 up. A default of `null` means "not
given". A type such as `str or list` takes one value or a list of values. In Python the options have the same
names. A name that is a word of Python ends in `_`, as in `class_`.

## Options of every pipe

| option | for | meaning |
|---|---|---|
| `on_error` | all pipes | what happens to a sample that fails: [failures](../../guide/failures.md) |
| `on` | all pipes | where the work is done: [processes](../../guide/processes.md) |
| `unordered` | maps | samples come as they are done: [processes](../../guide/processes.md) |
| `options` | `decode` | options of decoders, by the decoder's name: [lists and maps](../../guide/graph.md#lists-and-maps) |
| `interleave` | flat maps that are not parallel | how many input samples are open at a time, each giving a block in its turn; 1 to 65536, default 1 |
| `interleave_block` | the same | how many samples one gives before it is the next one's turn; 1 to 1000000000, default 1 |

## Pages
"""


def pipes_page(page: Page) -> str:
    known = pipes()
    parts = [entry(name, *known[name]) for name in sorted(known) if home(name) == page.name]
    return "\n".join([HEAD, f"# {page.title}\n", paragraph(page.summary + ".") + "\n", *parts]).rstrip() + "\n"


def home(name: str) -> str:
    """The name of the page that a pipe is on."""
    page = HOMES.get(name, pipes()[name][0])
    if page not in (one.name for one in PAGES):
        raise LookupError(f"no page is called {page}: the file of the pipe {name} names one, or its plugin has one in Cargo.toml")
    return page


def entry(name: str, plugin: str, pipe: dict[str, Any]) -> str:
    options = [option for option in pipe["options"] if option["name"] not in INHERITED]
    lines = [f"## `{name}`\n", paragraph(table_text(pipe["summary"]) + "."), ""]
    lines += [bullet(label, text) for label, text in facts(plugin, pipe)]
    if options:
        rows = [[f"`{option['name']}`", kind(option), default(option), bounds(option), table_text(option["doc"])] for option in options]
        lines += ["", table(["option", "type", "default", "range", "meaning"], rows).rstrip()]
    lines += ["", "```py", call(name, pipe), "```"]
    if name in vars(fb.Dataset):
        lines += ["", "In Python it also takes a function: [functions](../../tasks/functions.md)."] if name != "batch" else []
    examples = EXAMPLES.get(name)
    if examples is None:
        raise LookupError(f"the pipe {name} has no example: its file has none, in the block of toml at its top")
    lines += ["", "```sh", *examples, "```", ""]
    return "\n".join(lines)


def facts(plugin: str, pipe: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What an entry says of a pipe beside its options."""
    group, parallel = pipe["class"], pipe["parallel"]
    yield "Kind", (
        "sampler: it says which samples of a source with random access are read, and in which order"
        if pipe["samples"]
        else CLASSES[f"{group}, parallel" if parallel else group]
    )
    yield "Plugin", f"`{plugin}`"
    if pipe["inputs"] not in ([1, 1], [0, 0]) or pipe["outputs"] != 1 or pipe["outputs_option"]:
        yield "Inputs, outputs", streams(pipe)
    yield "Order", order(pipe)
    yield "State", state(pipe)
    if pipe["drops"]:
        yield "Leaves out", drops(pipe)
    if group == "stream" and not pipe["samples"]:
        yield "Uids", {"kept": "kept", "made": "new ones", "derived": "made of the sample's own and its input or pass"}[pipe["uids"]]
    if pipe["draws"] or pipe["shuffles"] or seeded(pipe):
        yield "Random", draws(pipe)
    if pipe["indexed"]:
        yield "Random access", "samplers can draw from it"
    if pipe["writes"]:
        yield "Ranks", "each rank writes its own share"
    if pipe.get("opens"):
        yield "Opens", opens(pipe["opens"])
    if pipe["on"] != "threads":
        yield "Runs on", "a thread of its own, since it waits for other things than the processor"
    if pipe["also"]:
        yield "Called elsewhere", ", ".join(f"`{name}`" for name in pipe["also"].split())


def streams(pipe: dict[str, Any]) -> str:
    least, most = pipe["inputs"]
    taken = str(least) if least == most else f"{least} or more"
    given = f"as many as `{pipe['outputs_option']}` says" if pipe["outputs_option"] else str(pipe["outputs"])
    return f"{taken} in, {given} out"


def order(pipe: dict[str, Any]) -> str:
    if pipe["class"] == "source":
        return "the same in every run"
    if pipe["samples"]:
        return "the one it draws"
    if pipe["shuffles"]:
        return "of the rows in each sample: random" if pipe["class"] == "map" else "random"
    if pipe["name"] in ("sort", "bucket_by_length", "max_tokens", "group_by", "pack"):
        return "its own, the same in every run"
    if pipe["class"] == "map":
        return "kept, unless `unordered=true`"
    return "kept" if pipe["inputs"][1] == 1 else "kept within each input"


def state(pipe: dict[str, Any]) -> str:
    if pipe["class"] == "map":
        return "none"
    if pipe["parallel"]:
        return "none; a resume begins with a whole input sample"
    return "its place; samples that it holds are read again at a resume" if pipe["class"] == "stream" else "its place"


def drops(pipe: dict[str, Any]) -> str:
    if pipe["drops"] == "*":
        return "samples: that is what it is for"
    names = " or ".join(f"`{name}`" for name in pipe["drops"].split())
    return f"samples, if {names} is not at its default"


def seeded(pipe: dict[str, Any]) -> bool:
    return any(option["name"] == "seed" for option in pipe["options"])


def draws(pipe: dict[str, Any]) -> str:
    if not seeded(pipe) and pipe["draws"] in ("", "*"):
        return "always"
    said = ["by the run's seed, unless `seed` is given"] if seeded(pipe) else []
    for one in pipe["draws"].split():
        name, about, value = re.split("([=~])", one, maxsplit=1)
        said.append(f"if `{name}` is `{value}`" if about == "=" else f"if `{name}` has `{value})` in it")
    return " or ".join(said)


def opens(given: dict[str, Any]) -> str:
    names = " ".join(f"`.{extension}`" for extension in given["extensions"])
    follows = f"; [`{given['then']}`](#{given['then']}) follows it" if given["then"] else ""
    return f"files named {names}{first_bytes(given['magic'])}{follows}"


def first_bytes(magic: list[dict[str, Any]]) -> str:
    return ", or that begin as such files do" if any(one["bytes"] for one in magic) else ""


def kind(option: dict[str, Any]) -> str:
    one = str(option["kind"])
    if option["list"] == "no":
        return one
    return f"{one} or list" if option["list"] == "either" else f"list of {one}"


def default(option: dict[str, Any]) -> str:
    return "required" if option["required"] else f"`{json.dumps(option['default'], ensure_ascii=False)}`"


def bounds(option: dict[str, Any]) -> str:
    if option["choices"]:
        return ", ".join(f"`{table_text(json.dumps(choice)[1:-1])}`" for choice in option["choices"])
    least, most = option["min"], option["max"]
    if most is not None and most >= 2**63 - 1:
        most = None
    if most is not None:
        return f"{least} to {most}"
    return "" if least is None else f"{least} or more"


def call(name: str, pipe: dict[str, Any]) -> str:
    """How it is called in Python."""
    if pipe["class"] == "source":
        return signature(f"forebay.{name}", "", pipe)
    if pipe["inputs"][1] != 1:
        return signature(f"forebay.{name}", "datasets", pipe)
    return signature(f"dataset.{name}", "", pipe)


def signature(called: str, first: str, pipe: dict[str, Any]) -> str:
    options = [option for option in pipe["options"] if option["name"] not in INHERITED]
    given = [first] if first else []
    for option in sorted(options, key=lambda option: not option["required"]):
        name = make_stubs.spelt(option["name"])
        given.append(name if option["required"] else f"{name}={option['default']!r}")
    line = f"{called}({', '.join(given)})"
    if len(line) <= WIDTH:
        return line
    return f"{called}(\n" + textwrap.fill(", ".join(given), WIDTH - 4, initial_indent="    ", subsequent_indent="    ", break_long_words=False, break_on_hyphens=False) + ",\n)"


# Decoders.


DECODERS = """# Decoders

A decoder makes a value of the bytes of a field. You never put one into a graph. The pipe
[`decode`](pipes/fields.md#decode) picks one for each field, by the first bytes and by the extension
that the field's name ends in.

- `decode decoders=['jpg=jpeg']` names the decoder of a field.
- `forebay plugins why FILE` says which decoder takes a file, and why the others do not.
- Bytes that no decoder takes stay bytes. `decode strict=true` makes them an error.
- Nothing has to be decoded. A pipe that opens files, such as `untar`, reads files with many samples.

How a decoder is chosen, if several could take the bytes, is in
[plugins inside](../inside/plugins.md#which-decoder-takes-a-value).

```sh
forebay head -n 1 "files 'examples/photos/*.tar' | untar | decode"
forebay plugins why plugins/image/seeds/rgb.png
```

## All decoders
"""


def decoders_page() -> str:
    listed = sorted(((one, plugin["name"].removeprefix("forebay-")) for plugin in plugins() for one in plugin["decoders"]), key=lambda pair: pair[0]["name"])
    unknown = {one["name"] for one, _ in listed} ^ set(GIVES)
    if unknown:
        raise LookupError(f"decoders and what their files say they give, in the block of toml at the top, differ in {sorted(unknown)}")
    rows = [[f"[`{one['name']}`](#{one['name']})", plugin, extensions(one), table_text(one["summary"])] for one, plugin in listed]
    parts = [HEAD, DECODERS, table(["decoder", "plugin", "extensions", "what it does"], rows)]
    return "\n".join(parts + [decoder(one, plugin) for one, plugin in listed]).rstrip() + "\n"


def decoder(one: dict[str, Any], plugin: str) -> str:
    gives, when = GIVES[one["name"]]
    lines = [f"### `{one['name']}`\n", paragraph(one["summary"] + "."), ""]
    lines += [bullet("Plugin", f"`{plugin}`"), bullet("Extensions", extensions(one)), bullet("First bytes", magic(one["magic"]))]
    if one["media_types"]:
        lines.append(bullet("Media types", ", ".join(f"`{media}`" for media in one["media_types"])))
    lines += [bullet("Gives", gives), bullet("When to use", when)]
    if one["priority"] != 128:
        lines.append(bullet("Priority", f"{one['priority']}; the usual one is 128, and the higher one wins"))
    if one["options"]:
        rows = [[f"`{option['name']}`", kind(option), default(option), bounds(option), table_text(option["doc"])] for option in one["options"]]
        lines += ["", table(["option", "type", "default", "range", "meaning"], rows).rstrip()]
    else:
        lines.append(bullet("Options", "none"))
    return "\n".join([*lines, ""])


def extensions(one: dict[str, Any]) -> str:
    return " ".join(f"`.{extension}`" for extension in one["extensions"]) or DASH


def magic(given: list[dict[str, Any]]) -> str:
    """Each of the first bytes that tell the format, in hex digits, and as text where they are text."""
    said = []
    for one in given:
        if not one["bytes"]:
            continue
        found = bytes.fromhex(one["bytes"])
        text = f" (`{found.decode()}`)" if all(33 <= byte < 127 and byte != 96 for byte in found) else ""
        where = f" at byte {one['offset']}" if one["offset"] else ""
        said.append(f"`{found.hex(' ')}`{text}{where}")
    if len(said) > MOST_MAGIC:
        said[MOST_MAGIC // 2 :] = [f"{len(said) - MOST_MAGIC // 2} more like them"]
    own = "the decoder looks at the content" if any(not one["bytes"] for one in given) else ""
    return ", or ".join(filter(None, ["; ".join(said), own])) or "none: the extension decides"


# The command.


COMMANDS = """# The command

This page is what `forebay COMMAND --help` prints. [The commands](../guide/commands.md) says what each one is
for, and which exit codes there are.

```sh
forebay --help
forebay run --help
```
"""


def commands_page() -> str:
    parts = [HEAD, COMMANDS]
    for words, text in helps(()):
        parts += [f"## `{' '.join(('forebay', *words))}`\n", "```text", text, "```", ""]
    return "\n".join(parts).rstrip() + "\n"


def helps(words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """The text of this command, then those of its own."""
    text = help_of(words)
    yield words, text
    listed = re.search(r"^Commands:\n((?: .+\n)+)", text, re.MULTILINE)
    for line in listed[1].splitlines() if listed else []:
        name = line.split()[0]
        if name != "help":
            yield from helps((*words, name))


def help_of(words: tuple[str, ...]) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS" and not name.startswith("FOREBAY_")}
    command = [sys.executable, "-m", "forebay", *words, "--help"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return "\n".join(line.rstrip() for line in ran.stdout.strip().splitlines())


# Markdown.


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def table_text(text: str) -> str:
    """Text that stands in a table."""
    return text.replace("|", "\\|").replace("*.", "\\*.") if "`" not in text else text.replace("|", "\\|")


def paragraph(text: str) -> str:
    return textwrap.fill(text, WIDTH, break_long_words=False, break_on_hyphens=False)


def bullet(label: str, text: str) -> str:
    return textwrap.fill(f"**{label}**: {text}.", WIDTH, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    main()
