"""Lints of a graph, as warnings when a loader is made."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterable
from typing import NamedTuple

FOLDER = os.path.dirname(__file__) + os.sep


class Lint(NamedTuple):
    """A lint: something in a graph that its author may not have meant, and what to do about it."""

    node: str
    message: str


class LintWarning(UserWarning):
    """A graph is slower, larger or less random than it looks. ``node`` is the node, ``message`` says what to do.

    Settings that a graph makes explicitly are no warning, but ``Dataset.explain()`` lists them too.
    """

    def __init__(self, node: str, message: str) -> None:
        super().__init__(node, message)
        self.node = node
        self.message = message

    def __str__(self) -> str:
        return f"{self.node}: {self.message}"


def warn(lints: Iterable[tuple[str, str]]) -> None:
    """Warns of each lint, at the first line outside of this package."""
    for node, message in lints:
        warnings.warn(LintWarning(node, message), stacklevel=_level())


def _level() -> int:
    """How many frames of the caller's stack are this package's, and one."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(FOLDER):
        level, frame = level + 1, frame.f_back
    return level
