"""Whether every sample came exactly once, over all ranks and runs."""

from __future__ import annotations

import json
import os
from html import escape
from typing import Any

from forebay import _native


class EpochAudit:
    """What an audit found of one epoch. ``print`` it."""

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
        """Whether it could be judged; ``unfinished`` says what is needed where it could not."""
        return bool(self._found["judged"])

    @property
    def exactly_once(self) -> bool:
        """Whether all is known, and every sample came exactly once."""
        return bool(self._found["exactly_once"])

    @property
    def given(self) -> int:
        """How many samples the graph gave, over all ranks each counted once."""
        return int(self._found["given"])

    @property
    def delivered(self) -> int:
        """How many samples were delivered, those in batches one by one."""
        return int(self._found["delivered"])

    @property
    def left_out(self) -> list[dict[str, Any]]:
        """What nodes left out as they were told to: ``node``, ``samples``, and whether it ``failed`` on them."""
        return list(self._found["left_out"])

    @property
    def unfinished(self) -> list[str]:
        """Why not all is known: a run that did not end, or a rank or an earlier run whose file is not here."""
        return list(self._found["unfinished"])

    @property
    def offences(self) -> list[dict[str, Any]]:
        """What went wrong: ``what`` it is, the ``node`` that did it, how many ``samples``, and the first of them, ``named`` by uid and key."""
        return list(self._found["offences"])

    @property
    def missing(self) -> int:
        """How many samples were given and not delivered."""
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
    """What an audit found. It is true if every sample of every epoch came exactly once; ``print`` it to see what did not."""

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
        """How many samples were given and not delivered."""
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
    """Whether every sample came exactly once, by the files that loaders with ``audit=`` wrote: of all ranks, and of all runs that went on after one
    another. It is the check of ``forebay audit``.

    Close the loaders before, or end their epochs: what they keep back is written then.
    """
    found = _native.audit([os.fspath(file) for file in files])
    return Audit([EpochAudit(json.loads(document), text) for document, text in found])
