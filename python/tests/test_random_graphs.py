"""Random graphs with Python's sources, samplers and functions: the same samples on every executor, from any step on, and of all ranks together."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest
from graphs_of_tests import random_graph

import forebay as fb

EXECUTORS = ["inline", "threads:1", "threads:3", "processes:2"]
# Random graphs do what nobody means.
pytestmark = pytest.mark.filterwarnings("ignore::forebay.LintWarning")
FIRST = int(os.environ.get("FOREBAY_GRAPH", "0"))
SEEDS = range(FIRST, FIRST + int(os.environ.get("FOREBAY_GRAPHS", "30")))
"""Each is a graph: as many as FOREBAY_GRAPHS says, from FOREBAY_GRAPH on."""


def shown(sample: Any) -> tuple[Any, ...]:
    """A sample, to be compared."""
    fields = {name: value.tolist() if isinstance(value, fb.Array) else value for name, value in sample.items()}
    return sample.uid, sample.key, sorted(fields.items())


def rest(epoch: fb.Epoch, most: int | None = None) -> list[Any]:
    """What comes, and what is raised in its end."""
    found: list[Any] = []
    try:
        while len(found) != most:
            found.append(shown(next(epoch)))
    except StopIteration:
        pass
    except ValueError as error:
        found.append(repr(error))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_graph_gives_the_same_everywhere(seed: int) -> None:
    rng = random.Random(seed)
    graph = random_graph(rng)
    with graph.loader(executor="inline", seed=seed, epochs=2) as loader:
        truth, second = rest(iter(loader)), rest(iter(loader))
    for executor in EXECUTORS[1:]:
        with graph.loader(executor=executor, seed=seed, epochs=2) as loader:
            assert rest(iter(loader)) == truth, executor
            if executor == "threads:3":
                assert rest(iter(loader)) == second, "the second epoch"
    _goes_on(graph, rng, truth, seed)
    if not any(isinstance(sample, str) for sample in truth):
        _is_shared_out(graph, rng, truth, seed)


def _is_shared_out(graph: fb.Dataset, rng: random.Random, truth: list[Any], seed: int) -> None:
    """Ranks together give each sample once; where batches are made of what a rank has, they have the same in them."""
    shares: list[Any] = []
    world_size = rng.randint(2, 4)
    for rank in range(world_size):
        with graph.loader(executor=rng.choice(EXECUTORS[:3]), seed=seed, ranks=(rank, world_size)) as loader:
            shares += rest(iter(loader))
    if not any(node["pipe"] in ("batch", "py_gather") for node in graph._nodes):
        assert sorted(map(repr, shares)) == sorted(map(repr, truth))
    # What becomes of a batch, or of a sample of it, may depend on the whole batch.
    elif not any(node.get("drop_last") or _depends_on_its_batch(node.get("function", "")) for node in graph._nodes):
        assert sorted(_numbers(shares)) == sorted(_numbers(truth))


def _depends_on_its_batch(function: str) -> bool:
    return function.partition("@")[0].endswith((".of_even_sum", ".drawn"))


def _numbers(samples: list[Any]) -> Iterator[Any]:
    for _, _, fields in samples:
        for _, value in fields:
            yield from value if isinstance(value, list) else [value]


def _goes_on(graph: fb.Dataset, rng: random.Random, truth: list[Any], seed: int) -> None:
    """From a random step, and from another one behind it, each on another executor."""
    taken = 0
    state: dict[str, Any] = {}
    for executor in rng.sample(EXECUTORS, 3):
        with graph.loader(executor=executor, seed=seed, epochs=2) as loader:
            loader.load_state_dict(state)
            epoch = iter(loader)
            step = rng.randint(0, max(0, len(truth) - taken - 1))
            assert rest(epoch, step) == truth[taken : taken + step], (executor, taken)
            taken += step
            state = loader.state_dict()
    with graph.loader(executor=rng.choice(EXECUTORS), seed=seed, epochs=2) as loader:
        loader.load_state_dict(state)
        assert rest(iter(loader)) == truth[taken:], taken


def test_graphs_are_of_all_kinds() -> None:
    """So that what is compared above is not always nothing."""
    graphs = [random_graph(random.Random(seed)) for seed in range(60)]
    pipes = {node["pipe"] for graph in graphs for node in graph._nodes}
    own = {"py_source", "py_indexed", "py_sampler", "py_map", "py_filter", "py_flat_map", "py_gather", "py_rows"}
    others = {"shuffle", "batch", "unbatch", "take", "skip", "repeat", "mix", "mux", "zip", "concat", "fork", "prefetch"}
    assert own | others <= pipes, (own | others) - pipes
    with_samples = sum(bool(rest(iter(graph.loader(executor="inline")))) for graph in graphs)
    assert with_samples > 0.7 * len(graphs)
