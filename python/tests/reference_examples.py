"""What the reference says of pipes and decoders beside what plugins say of themselves: examples, what decoders give, and which page has which pipe.

It stands in the plugins' folders. A page of pipes is in ``package.metadata.forebay.pages`` of ``Cargo.toml``. What is to be said of a pipe or a
decoder is in the file that has it: a block of ``toml`` in the comment at its top, with a table for each. ``make_reference.py`` reads this.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import Any

PLUGINS = Path(__file__).parents[2] / "plugins"


@dataclass(frozen=True)
class Page:
    """A page of pipes: those that name it, or those of the plugin of this name that name none."""

    name: str
    title: str
    summary: str


def pages() -> Iterator[Page]:
    for manifest in sorted(PLUGINS.glob("*/Cargo.toml")):
        metadata = tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]["metadata"]["forebay"]
        for page in metadata.get("pages", []):
            yield Page(page.get("name", manifest.parent.name), page["title"], page["summary"])


def said() -> dict[str, dict[str, Any]]:
    """What files say of pipes and decoders, by name."""
    found: dict[str, dict[str, Any]] = {}
    for path in sorted(PLUGINS.glob("*/src/**/*.rs")):
        tables = tomllib.loads(block(path.read_text(encoding="utf-8")))
        if twice := found.keys() & tables.keys():
            raise LookupError(f"{path}: another file says something of {sorted(twice)}")
        found.update(tables)
    if not found:
        raise LookupError(f"no file in {PLUGINS} has a block of toml")
    return found


def block(source: str) -> str:
    """The block of toml in the comment at the top of a file; empty if there is none."""
    comment = [line.removeprefix("//!").removeprefix(" ") for line in takewhile(lambda line: line.startswith("//!"), source.splitlines())]
    if "```toml" not in comment:
        return ""
    inside = comment[comment.index("```toml") + 1 :]
    return "\n".join(inside[: inside.index("```")])


PAGES = tuple(pages())
SAID = said()
# For each pipe commands that run in a fresh clone.
EXAMPLES: dict[str, list[str]] = {name: table["examples"] for name, table in SAID.items() if "examples" in table}
# For each pipe that names one its page.
HOMES: dict[str, str] = {name: table["page"] for name, table in SAID.items() if "page" in table}
# For each decoder what it gives, and when to use it.
GIVES: dict[str, tuple[str, str]] = {name: (table["gives"], table["when"]) for name, table in SAID.items() if "gives" in table}
