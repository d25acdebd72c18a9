"""Random graphs, each from its seed: Python's sources, samplers and functions among the pipes of the tree."""

from __future__ import annotations

import random
from typing import Any

import functions_of_tests as f

import forebay as fb

NUMBERS, BATCHES, MIXED = "numbers", "batches", "mixed"
MOST = 200
"""The most samples that a graph may be thought to have, for pipes that make more of them."""


def random_graph(rng: random.Random) -> fb.Dataset:
    """A graph that ends, of a few sources and some pipes."""
    return Maker(rng).graph()


class Maker:
    """Puts pipes behind outputs that nobody reads yet."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        # What is read, about how many samples it has at most, and what its field `value` holds.
        self.open: list[tuple[fb.Dataset, int, str]] = []

    def graph(self) -> fb.Dataset:
        for _ in range(self.rng.randint(1, 3)):
            self.open.append(self.source())
        for _ in range(self.rng.randint(1, 6)):
            at = self.rng.randrange(len(self.open))
            self.open[at] = self.diamond(*self.open[at]) if self.rng.random() < 0.15 else self.chain(*self.open[at])
        while len(self.open) > 1:
            self.rng.shuffle(self.open)
            self.open[:2] = [self.merged(self.open[0], self.open[1], rewinds=True)]
        for _ in range(self.rng.randint(0, 2)):
            self.open[0] = self.chain(*self.open[0])
        return self.open[0][0]

    def place(self, *places: str) -> dict[str, Any]:
        """Where a node runs, at times."""
        return {"on": self.rng.choice(places)} if self.rng.random() < 0.5 else {}

    def source(self) -> tuple[fb.Dataset, int, str]:
        rng, place = self.rng, self.place("threads", "process", "own_thread")
        count = 0 if rng.random() < 0.1 else rng.randint(1, 60)
        items = [{"value": rng.randrange(100)} for _ in range(count)]
        draws = [rng.randrange(count) for _ in range(rng.randint(0, 60))] if count else []
        made: list[fb.Dataset] = [
            fb.range(count),
            fb.from_list(items, version=str(items)),
            fb.from_iterable(f.Stepper(count), version=str(count), **place),
            fb.from_iterable(f.Numbers(count), version=str(count), **place),
            fb.from_indexed(f.RowsTogether(count), version=str(count)).random_sampler(),
            fb.from_indexed(f.Rows(count), version=str(count)).sample(draws, version=str(draws)),
            fb.from_indexed(f.Rows(count), version=str(count)).sample(f.Shuffled(count), version=str(count)),
            fb.from_list(items, version=str(items)).weighted_sampler([1 + at % 3 for at in range(count)] or [1]) if count else fb.range(0),
        ]
        return rng.choice(made), max(count, len(draws)), NUMBERS

    def chain(self, graph: fb.Dataset, most: int, kind: str) -> tuple[fb.Dataset, int, str]:
        """A pipe with one input and one output."""
        rng = self.rng
        if rng.random() < 0.55:
            return self.function(graph, most, kind)
        number = rng.randint(1, 12)
        match rng.randrange(9):
            case 0:
                return graph.take(number * 4), min(most, number * 4), kind
            case 1:
                return graph.skip(number // 3), most, kind
            case 2 | 3:
                return graph.shuffle(number), most, kind
            case 4 if most * 2 <= MOST:
                return graph.repeat(2), most * 2, kind
            case 5:
                return graph.prefetch(number), most, kind
            case 6 | 7 if kind == NUMBERS:
                return graph.batch(number, rng.random() < 0.3), most, BATCHES
            case 8 | 7 if kind == BATCHES:
                return graph.unbatch(interleave=rng.randint(1, 3)), most * 12, NUMBERS
            case _:
                return graph.window_shuffle(number), most, kind

    def function(self, graph: fb.Dataset, most: int, kind: str) -> tuple[fb.Dataset, int, str]:
        """A function of Python's."""
        rng, place = self.rng, self.place("threads", "process")
        if kind == MIXED:
            return graph.map(f.same, **place), most, kind
        if kind == BATCHES:
            return rng.choice([graph.map(f.shifted, **place), graph.filter(f.of_even_sum, **place)]), most, kind
        size = rng.randint(1, 9)
        match rng.randrange(8):
            case 0 | 1:
                return graph.map(f.one_more, **place), most, kind
            case 2:
                return graph.filter(f.odd, **place), most, kind
            case 3 if most * 2 <= MOST:
                return graph.flat_map(f.twice, **place), most * 2, kind
            case 4:
                return graph.random_map(f.drawn, **place), most, kind
            case 5:
                return graph.map(f.some_rows, batched=True, batch_size=size, **place), most, kind
            case 6:
                forgiving: dict[str, Any] = {} if rng.random() < 0.2 else {"on_error": rng.choice(["skip", "quarantine"])}
                return graph.map(f.refuse_some, **place, **forgiving), most, kind
            case _:
                return graph.batch(size, collate_fn=f.listed, **place).unbatch(), most, kind

    def diamond(self, graph: fb.Dataset, most: int, kind: str) -> tuple[fb.Dataset, int, str]:
        """Two branches that come together again."""
        left, right = graph.fork(2)
        return self.merged((left, most, kind), self.function(right, most, kind), rewinds=False)

    def merged(self, left: tuple[fb.Dataset, int, str], right: tuple[fb.Dataset, int, str], rewinds: bool) -> tuple[fb.Dataset, int, str]:
        """A pipe that reads both."""
        rng, both, kind = self.rng, [left[0], right[0]], left[2] if left[2] == right[2] else MIXED
        most = left[1] + right[1]
        match rng.randrange(5 if rewinds else 3):
            case 0:
                return fb.concat(both), most, kind
            case 1:
                return fb.mux(both, stop=rng.choice(["shortest", "longest"]), block=rng.randint(1, 3)), most, kind
            case 2:
                return fb.zip(both, prefix=["", "other_"]).select(["value"]), min(left[1], right[1]), left[2]
            case 3:
                return fb.mix(both, [1, 2], rng.choice(["cycle_until_all_exhausted", "first_exhausted"])), most * 3, kind
            case _:  # It may start its inputs over, so nobody else may read what they read.
                return fb.mix(both, [2, 1], "all_exhausted", draw=rng.choice(["sampled", "proportional"])), most, kind
