"""Audits: whether every sample came exactly once, over all ranks and runs."""

from __future__ import annotations

import json
import os
from html import escape
from typing import Any

from forebay import _native


class EpochAudit:
    """The result of an audit for one epoch. ``print`` it."""

    __slots__ = ("_found", "_text")

    def __init__(self, found: dict[str, Any], text: str) -> None:
        self._found = found
        self._text = text

    @property
    def epoch(self) -> int:
        """The epoch."""
        return int(self._found["epoch"])

    @property
    def judged(self) -> bool:
        """Whether the epoch could be judged. If not, ``unfinished`` says what is needed."""
        return bool(self._found["judged"])

    @property
    def exactly_once(self) -> bool:
        """Whether everything is known, and every sample came exactly once."""
        return bool(self._found["exactly_once"])

    @property
    def given(self) -> int:
        """How many samples the graph gave, over all ranks; each counts once."""
        return int(self._found["given"])

    @property
    def delivered(self) -> int:
        """How many samples were delivered; those in batches count one by one."""
        return int(self._found["delivered"])

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """Samples that nodes left out on purpose: ``node``, ``samples``, and whether they ``failed``."""
        return list(self._found["left_out"])

    @property
    def unfinished(self) -> list[str]:
        """Why not everything is known: a run did not end, or the file of a rank or an earlier run is missing."""
        return list(self._found["unfinished"])

    @property
    def offences(self) -> list[dict[str, Any]]:
        """The problems: ``what`` happened, the ``node``, how many ``samples``, and the first of them, ``named`` by uid and key."""
        return list(self._found["offences"])

    @property
    def missing(self) -> int:
        """How many samples were given but not delivered."""
        return self._count("missing")

    @property
    def twice(self) -> int:
        """How many samples were delivered more than once."""
        return self._count("twice")

    def _count(self, what: str) -> int:
        return sum(int(offence["samples"]) for offence in self.offences if offence["what"] == what)

    def __repr__(self) -> str:
        return self._text


class Audit:
    """The result of an audit. It is true if every sample of every epoch came exactly once. ``print`` it to see the problems."""

    __slots__ = ("epochs",)

    def __init__(self, epochs: list[EpochAudit]) -> None:
        self.epochs = epochs

    @property
    def exactly_once(self) -> bool:
        """Whether every sample of every epoch came exactly once."""
        return all(epoch.exactly_once for epoch in self.epochs)

    @property
    def given(self) -> int:
        """How many samples the graph gave."""
        return sum(epoch.given for epoch in self.epochs)

    @property
    def delivered(self) -> int:
        """How many samples were delivered."""
        return sum(epoch.delivered for epoch in self.epochs)

    @property
    def missing(self) -> int:
        """How many samples were given but not delivered."""
        return sum(epoch.missing for epoch in self.epochs)

    @property
    def twice(self) -> int:
        """How many samples were delivered more than once."""
        return sum(epoch.twice for epoch in self.epochs)

    def __bool__(self) -> bool:
        return self.exactly_once

    def __repr__(self) -> str:
        return "\n".join(map(repr, self.epochs))

    def _repr_html_(self) -> str:
        return f"<pre>{escape(repr(self))}</pre>"


def audit(*files: str | os.PathLike[str]) -> Audit:
    """Checks whether every sample came exactly once, as ``forebay audit`` does.

    files: the files that loaders with ``audit=`` wrote, of all ranks and of all resumed runs.

    Close the loaders first, or read their epochs to the end: only then the files are complete.
    """
    found = _native.audit([os.fspath(file) for file in files])
    return Audit([EpochAudit(json.loads(document), text) for document, text in found])
