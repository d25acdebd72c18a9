"""What can be said of a graph before it runs."""

from __future__ import annotations

import json
from html import escape
from typing import TYPE_CHECKING

from forebay import plugins
from forebay._lints import Lint
from forebay._loader import _placed, _release
from forebay._settings import executor_of, locked, ranks_of

if TYPE_CHECKING:
    from forebay._dataset import Dataset


class Explanation:
    """What a graph does and where, as text: ``print`` it. ``lints`` are what may not be meant; ``to_json()`` has all of it."""

    __slots__ = ("_text", "_json", "lints")

    def __init__(self, text: str, document: str) -> None:
        self._text = text
        self._json = document
        self.lints = [Lint(lint["node"], lint["message"]) for lint in json.loads(document)["lints"]]

    def to_json(self) -> str:
        """All of it, as ``forebay explain --json`` prints it."""
        return self._json

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


def explain(
    dataset: Dataset, num_workers: int | None, executor: str | None, ranks: tuple[int, int] | str | None
) -> Explanation:
    """What a loader of the dataset would do."""
    executor = executor_of(num_workers, executor)
    graph, sent = _placed(dataset, executor)
    _release(0, sent)  # Only where functions would run is asked here.
    return Explanation(*graph.explain(plugins.registry(), executor, ranks_of(ranks), locked()))

