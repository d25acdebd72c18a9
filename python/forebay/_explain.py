"""Explains a graph before it runs."""

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
    """The explanation of a graph, as text: ``print`` it. ``lints`` lists what may be unintended; ``to_json()`` returns everything."""

    __slots__ = ("_text", "_json", "lints")

    def __init__(self, text: str, document: str) -> None:
        self._text = text
        self._json = document
        self.lints = [Lint(lint["node"], lint["message"]) for lint in json.loads(document)["lints"]]

    def to_json(self) -> str:
        """The JSON of ``forebay explain --json``."""
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
    """Explains what a loader of the dataset would do."""
    executor = executor_of(num_workers, executor)
    graph, sent = _placed(dataset, executor)
    _release(0, sent)  # Only where functions would run is asked here.
    return Explanation(*graph.explain(plugins.registry(), executor, ranks_of(ranks), locked()))

