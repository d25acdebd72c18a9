"""What a graph does and its author may not have meant: as warnings when a loader is made."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from typing import NamedTuple

FOLDER = os.path.dirname(__file__) + os.sep


class Lint(NamedTuple):
    """Something that a graph does and its author may not have meant, and what to do about it."""

    node: str
    message: str


class LintWarning(UserWarning):
    """A graph is slower, larger or less random than it looks. ``node`` is the node that it is about, ``message`` says what to do.

    Whatever a graph asks for in so many words is no warning. ``Dataset.explain()`` tells that too.
    """

    def __init__(self, node: str, message: str) -> None:
        super().__init__(node, message)
        self.node = node
        self.message = message

    def __str__(self) -> str:
        return f"{self.node}: {self.message}"


def warn(lints: Iterable[tuple[str, str]]) -> None:
    """Warns of each, at the line outside of this package that led here."""
    for node, message in lints:
        warnings.warn(LintWarning(node, message), stacklevel=_level())


def _level() -> int:
    """How many frames of the caller's stack are this package's, and one."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(FOLDER):
        level, frame = level + 1, frame.f_back
    return level
