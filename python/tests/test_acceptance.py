"""What the founding documents ask for, by the ids of the list of acceptance, where it is a matter of Python."""

from __future__ import annotations

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import functions_of_tests as f
import numpy as np
import pytest

import forebay as fb

EXECUTORS = ["inline", "threads:2", "processes:2"]


def values(samples: Any) -> list[Any]:
    return [sample["value"].tolist() if isinstance(sample["value"], fb.Array) else sample["value"] for sample in samples]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_f2_a_sampler_says_where_it_is_and_is_told_the_epoch(executor: str) -> None:
    def orders(epoch: int) -> list[int]:
        return [100 + at for at in f.Sampler.order(30, epoch)]

    def graph() -> fb.Dataset:
        return fb.from_indexed(range(100, 130)).sample(f.Sampler(30), version="1").map(f.same)

    with graph().loader(executor=executor, epochs=4) as loader:
        assert [values(epoch) for _, epoch in zip(range(2), loader.epochs(), strict=False)] == [orders(0), orders(1)]
        begun = iter(loader)
        first = values(next(begun) for _ in range(11))
        state = json.loads(json.dumps(loader.state_dict()))
    with graph().loader(executor=executor, epochs=4) as loader:
        loader.load_state_dict(state)
        assert [values(epoch) for epoch in loader.epochs()] == [orders(2)[len(first) :], orders(3)]
    with graph().loader(executor=executor) as loader:
        loader.set_epoch(7)
        assert values(loader) == orders(7)


def test_f2_a_source_is_told_the_epoch() -> None:
    with fb.from_iterable(f.Epochs(), version="1").loader(executor="inline", epochs=3) as loader:
        assert [values(epoch) for epoch in loader.epochs()] == [[0, 0], [1, 1], [2, 2]]
    with fb.from_iterable(f.Epochs, version="1").loader(executor="threads:2") as loader:
        loader.set_epoch(5)
        assert values(loader) == [5, 5]


def test_f2_a_sampler_with_state_goes_on_and_draws_nothing_again() -> None:
    again = f.Sampler(60_000)
    graphs = [fb.from_indexed(range(60_000)).sample(sampler, version="1") for sampler in (f.Sampler(60_000), again)]
    with graphs[0].loader(executor="inline") as loader:
        epoch = iter(loader)
        first = values(next(epoch) for _ in range(50_000))
        state = loader.state_dict()
    with graphs[1].loader(executor="inline") as loader:
        loader.load_state_dict(state)
        assert first + values(loader) == f.Sampler.order(60_000, 0)
    assert again.drawn < 50_000, "it was iterated from its start"


@pytest.mark.parametrize("workers", [0, 2])
def test_f4_indices_come_alone_or_together_to_a_fetcher_that_batches_or_not(workers: int) -> None:
    torch = pytest.importorskip("torch")
    import datasets_of_tests as d
    from torch.utils.data import DataLoader as Torchs

    from forebay.torch import DataLoader

    lists = [[3, 1], [2], [0, 4, 5]]
    cases: list[dict[str, Any]] = [
        {"sampler": [3, 1, 2], "batch_size": 2},
        {"sampler": [3, 1, 2], "batch_size": None},
        {"batch_sampler": lists},
        {"sampler": lists, "batch_size": None},  # The dataset is asked for a list.
    ]
    for case in cases:
        ours = [batch.tolist() for batch in DataLoader(d.Bulk(), num_workers=workers, **case)]
        assert ours == [batch.tolist() for batch in Torchs(d.Bulk(), num_workers=0, **case)] and len(ours) >= 2, case
    assert torch.is_tensor(next(iter(DataLoader(d.Bulk(), sampler=lists, batch_size=None))))


@pytest.mark.parametrize("workers", [0, 2])
def test_f5_several_are_got_in_one_call(workers: int) -> None:
    pytest.importorskip("torch")
    import datasets_of_tests as d

    from forebay.torch import DataLoader

    assert [batch.tolist() for batch in DataLoader(d.Together(), batch_size=3, num_workers=workers)] == [[0, 1, 2], [3, 4, 5], [6]]
    executor = f"processes:{workers}" if workers else "inline"
    graph = fb.from_indexed(f.RowsTogether(9)).sample([8, 1, 1])
    assert values(graph.loader(executor=executor)) == [64, 1, 1]


@pytest.mark.parametrize("taken", [0, 1, 7, 9])
def test_g17_reservoir_sampling_is_an_iterable_of_ones_own(taken: int) -> None:
    """The example of the first document: a sample of a stream, by a class that says itself where it is."""
    truth = values(fb.from_iterable(f.Reservoir(200, 10), version="1").batch(2).unbatch().loader(executor="inline"))
    assert len(truth) == 10 and len(set(truth)) == 10 and max(truth) > 50
    for executor in EXECUTORS:
        graph = fb.from_iterable(f.Reservoir(200, 10), version="1").map(f.same)
        with graph.loader(executor=executor) as loader:
            epoch = iter(loader)
            first = values(next(epoch) for _ in range(taken))
            state = loader.state_dict()
        with graph.loader(executor="threads:2") as loader:
            loader.load_state_dict(state)
            assert first + values(loader) == truth


@pytest.mark.parametrize("executor", ["threads:1", "threads:3", "processes:2"])
def test_i2_random_numbers_come_as_an_argument_and_are_of_the_sample_alone(executor: str) -> None:
    graph = fb.from_list(range(40)).shuffle(10).random_map(f.draw)
    with graph.loader(executor="inline", seed=6) as loader, graph.loader(executor=executor, seed=6) as other:
        for _ in range(2):
            drawn = [sample["drawn"] for sample in loader]
            assert drawn == [sample["drawn"] for sample in other] and len(set(drawn)) == 40


def test_i2_global_generators_are_seeded_for_each_batch_in_workers() -> None:
    torch = pytest.importorskip("torch")
    import datasets_of_tests as d

    from forebay.torch import DataLoader

    found = []
    for workers in (1, 2):
        loader = DataLoader(d.DrawingOfAll(12), batch_size=2, num_workers=workers, generator=torch.Generator().manual_seed(3))
        found.append([[number.tolist() for number in batch] for batch in loader])
    assert found[0] == found[1]
    for column in range(3):
        assert len({number for batch in found[0] for number in batch[column]}) == 12, "random, numpy and torch"


def test_m3_other_libraries_see_the_memory_itself() -> None:
    (batch,) = fb.range(4096).batch(4096).loader(num_workers=1)
    array = batch["value"]
    addresses = {array.ptr, array.numpy().ctypes.data, np.from_dlpack(array).ctypes.data, np.asarray(memoryview(array)).ctypes.data}
    try:
        import torch
    except ImportError:
        pass
    else:
        addresses |= {array.torch().data_ptr(), torch.from_dlpack(array).data_ptr()}
    assert len(addresses) == 1


def test_o1_the_arguments_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    import datasets_of_tests as d
    from torch.utils.data import DataLoader as Torchs

    from forebay.torch import DataLoader

    own, theirs = (inspect.signature(kind.__init__).parameters for kind in (DataLoader, Torchs))
    for name, parameter in theirs.items():
        assert name in own and own[name].default == parameter.default and own[name].kind == parameter.kind, name
    given: dict[str, Any] = {
        "batch_size": 3, "shuffle": True, "num_workers": 2, "collate_fn": d.as_list, "pin_memory": False, "drop_last": True,
        "timeout": 60, "worker_init_fn": d.seed_worker, "multiprocessing_context": "spawn", "prefetch_factor": 3,
        "persistent_workers": True, "in_order": True,
    }  # fmt: skip
    assert set(given) | {"dataset", "sampler", "batch_sampler", "generator"} >= set(theirs) - {"self", "pin_memory_device"}
    both = [kind(d.Counting(20), generator=torch.Generator().manual_seed(4), **given) for kind in (DataLoader, Torchs)]
    for _ in range(2):
        ours, torchs = ([batch for batch in loader] for loader in both)
        assert ours == torchs and len(ours) == 6


@pytest.mark.parametrize("executor", EXECUTORS)
def test_o2_iterables_and_pipes_stand_on_either_side_of_each_other(executor: str) -> None:
    pipes = fb.range(50).shuffle(9)
    inner = pipes.loader(executor="inline", seed=2)
    graph = fb.from_iterable(inner, on="threads", version="1").map(f.double).batch(4)
    truth = [2 * value for value in values(pipes.loader(executor="inline", seed=2))]
    with graph.loader(executor=executor) as loader:
        epoch = iter(loader)
        first = values(next(epoch) for _ in range(5))
        state = loader.state_dict()
    fresh = fb.from_iterable(pipes.loader(executor="inline", seed=2), on="threads", version="1").map(f.double).batch(4)
    with fresh.loader(executor=executor) as loader:
        loader.load_state_dict(state)
        assert sum(first + values(loader), []) == truth
    assert sum(values(iter(fresh.loader(executor="inline"))), []) != []


def test_o2_iterable_datasets_of_torchs_are_sources() -> None:
    pytest.importorskip("torch")
    import datasets_of_tests as d

    assert values(fb.from_iterable(d.Stream(5)).map(f.double).loader(executor="processes:2")) == [0, 2, 4, 6, 8]


def test_p8_both_flows_are_expressed_drawn_and_explained(tmp_path: Path) -> None:
    """Sampler, fetcher, dataset, collate, output: in one process, and in several."""
    own = fb.from_indexed(f.Rows(9)).random_sampler().map(f.same).batch(2, collate_fn=f.listed)
    drawing = own._repr_html_()
    order = [drawing.index(name) for name in ("py_indexed", "random_sampler", "py_map", "py_gather")]
    assert order == sorted(order) and drawing.count("<rect") == 5 and drawing.count("<line") == 4
    given = [values(own.loader(executor=executor, seed=1)) for executor in EXECUTORS]
    assert given[0] == given[1] == given[2] and sorted(sum(given[0], [])) == [at * at for at in range(9)]
    graph = tmp_path / "graph.toml"
    graph.write_text(fb.range(9).random_sampler().map("value=value * value").batch(2).to_toml())
    for executor, place in (("inline", "threads"), ("processes:2", "processes")):
        command = [sys.executable, "-m", "forebay", "explain", str(graph), "--executor", executor]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        parts = [line.split() for line in done.stdout.partition("segment ")[2].splitlines()[1:5]]
        assert [part[-3].strip() for part in parts] == ["random_sampler", "range", "map", "batch"], done.stdout
        assert place in " ".join(parts[2]) or executor == "inline", parts
