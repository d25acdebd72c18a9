"""Statistics of a loader, as numbers and as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

HEADS = ("node", "gave", "busy s", "waiting s", "share")


class Stats(Mapping[str, Any]):
    """What each node of a loader did so far. ``print`` it to see a table; as a mapping it has the numbers.

    ``nodes`` has ``samples``, ``bytes`` and ``busy`` for each node: seconds of work over all threads. ``wait_input``
    and ``wait_room`` are the seconds in which its part of the graph waited for input or for room. The other keys are
    ``threads``, ``seconds``, ``consumer_wait`` and ``limiting``.
    """

    __slots__ = ("_found",)

    def __init__(self, found: dict[str, Any]) -> None:
        self._found = found

    def __getitem__(self, name: str) -> Any:
        return self._found[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    @property
    def limiting(self) -> str:
        """The stage that limits the rate, in one line."""
        return str(self._found["limiting"])

    def _rows(self) -> list[tuple[str, ...]]:
        nodes = self._found["nodes"]
        whole = sum(node["busy"] for node in nodes)
        rows: list[tuple[str, ...]] = []
        for node in nodes:
            waiting = node["wait_input"] + node["wait_room"]
            share = f"{100 * node['busy'] / whole:.0f} %" if whole else "-"
            name = node["node"] if node["node"] == node["pipe"] else f"{node['node']} ({node['pipe']})"
            gave = f"{node['samples']:,}" if node["unit"] == "sample" else f"{node['samples']:,} ({node['unit']})"
            rows.append((name, gave, f"{node['busy']:.3f}", f"{waiting:.3f}", share))
        return rows

    def _below(self) -> str:
        return (
            f"limited by {self.limiting}; {self._found['seconds']:.2f} s, in which the consumer waited "
            f"{self._found['consumer_wait']:.2f} s"
        )

    def __repr__(self) -> str:
        rows = [HEADS, *self._rows()]
        widths = [max(len(row[at]) for row in rows) for at in range(len(HEADS))]
        lines = []
        for row in rows:
            cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
            lines.append("  ".join(cells).rstrip())
        return "\n".join([*lines, self._below()])

    def _repr_html_(self) -> str:
        def line(cells: tuple[str, ...], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        rows = "".join(line(row, "td") for row in self._rows())
        return f"<table>{line(HEADS, 'th')}{rows}</table><p>{escape(self._below())}</p>"
