"""What notebooks show: graphs as drawings, samples and batches as tables with pictures."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from forebay._native import Array

WIDTH, HEIGHT, GAP, MARGIN = 190, 44, 34, 8
MOST_CHARACTERS = 26
PICTURES, SIDE = 6, 96


def graph(nodes: Sequence[Mapping[str, Any]]) -> str:
    """A graph as SVG: each column of nodes reads those to its left."""
    column: dict[str, int] = {}
    for node in nodes:
        column[node["name"]] = max((column[_name(part)] + 1 for part in node["inputs"]), default=0)
    place: dict[str, tuple[int, int]] = {}
    rows: dict[int, int] = {}
    for name, at in column.items():
        place[name] = (MARGIN + at * (WIDTH + GAP), MARGIN + rows.get(at, 0) * (HEIGHT + GAP))
        rows[at] = rows.get(at, 0) + 1
    parts = [_edge(place[_name(part)], place[node["name"]]) for node in nodes for part in node["inputs"]]
    parts += [_box(place[node["name"]], node) for node in nodes]
    width = 2 * MARGIN + (max(column.values(), default=0) + 1) * (WIDTH + GAP) - GAP
    height = 2 * MARGIN + max(rows.values(), default=1) * (HEIGHT + GAP) - GAP
    return (
        f'<div style="overflow-x:auto"><svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'font-family="monospace" font-size="12">{"".join(parts)}</svg></div>'
    )


def _name(part: str) -> str:
    return part.partition(".")[0]


def _edge(start: tuple[int, int], end: tuple[int, int]) -> str:
    half = HEIGHT // 2
    return (
        f'<line x1="{start[0] + WIDTH}" y1="{start[1] + half}" x2="{end[0]}" y2="{end[1] + half}" '
        'stroke="#888" stroke-width="1.5"/>'
    )


def _box(place: tuple[int, int], node: Mapping[str, Any]) -> str:
    options = {name: value for name, value in node.items() if name not in ("name", "pipe", "inputs")}
    text = ", ".join(f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in options.items())
    short = text if len(text) <= MOST_CHARACTERS else text[: MOST_CHARACTERS - 1] + "…"
    left, top = place
    return (
        f'<g><title>{escape(text)}</title><rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" rx="5" fill="#8882" '
        f'stroke="#888"/><text x="{left + 8}" y="{top + 18}" fill="currentColor" font-weight="bold">{escape(node["pipe"])}</text>'
        f'<text x="{left + 8}" y="{top + 35}" fill="currentColor">{escape(short)}</text></g>'
    )


def sample(fields: Mapping[str, Any]) -> str:
    """The fields of a sample or of a batch, one a row."""
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{_kind(value)}</td><td>{_shown(value)}</td></tr>" for name, value in fields.items())
    return f"<table><tr><th>field</th><th>type</th><th>value</th></tr>{rows}</table>"


def _kind(value: Any) -> str:
    if isinstance(value, Array):
        return escape(f"{value.dtype} {list(value.shape)}")
    if isinstance(value, list):
        return f"list [{len(value)}]"
    return escape(type(value).__name__)


def _shown(value: Any) -> str:
    if isinstance(value, Array):
        pictures = _pictures(value)
        if pictures:
            return "".join(pictures)
        if value.size <= 8:
            return escape(str(value.tolist()))
        return ""
    text = repr(value)
    return escape(text if len(text) <= 80 else text[:79] + "…")


def _pictures(array: Array) -> list[str]:
    """Pictures of bytes, rows by columns by 1, 3 or 4 channels; the first few of a batch."""
    shape = array.shape
    if array.dtype != "uint8" or len(shape) not in (3, 4) or shape[-1] not in (1, 3, 4) or 0 in shape:
        return []
    height, width, channels = shape[-3:]
    size = height * width * channels
    whole = memoryview(array).cast("B")
    count = shape[0] if len(shape) == 4 else 1
    return [_picture(whole[at * size : (at + 1) * size], (height, width, channels)) for at in range(min(count, PICTURES))]


def _picture(pixels: memoryview, shape: tuple[int, int, int]) -> str:
    """A picture, made smaller by leaving pixels out."""
    height, width, channels = shape
    step = max(1, -(-max(height, width) // SIDE))
    lines = bytearray()
    columns = range(0, width, step)
    rows = range(0, height, step)
    for row in rows:
        lines.append(0)
        for column in columns:
            start = (row * width + column) * channels
            lines += pixels[start : start + channels]
    png = _png(len(columns), len(rows), channels, bytes(lines))
    return f'<img src="data:image/png;base64,{base64.b64encode(png).decode()}" style="margin:1px">'


def _png(width: int, height: int, channels: int, lines: bytes) -> bytes:
    """Source: https://www.w3.org/TR/png-3/, sections 5 and 11."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    colour = {1: 0, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 8, colour, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body
