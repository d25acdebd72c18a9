"""``forebay.torch.DataLoader``: torch's own batches, from any place on, with any number of workers."""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import pickle
import random
import select
import signal
import weakref
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import datasets_of_tests as d  # noqa: E402
from torch.utils.data import DataLoader as Torchs  # noqa: E402

import forebay as fb  # noqa: E402
from forebay.torch import DataLoader  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")  # Torch's, on machines with two cores.

ARGUMENTS: dict[str, dict[str, Any]] = {
    "in order": {"batch_size": 7},
    "shuffled": {"batch_size": 7, "shuffle": True},
    "last one dropped": {"batch_size": 8, "drop_last": True, "shuffle": True},
    "single items": {"batch_size": None},
    "collate_fn": {"batch_size": 5, "collate_fn": d.as_list},
}


def plain(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.tolist()
    if isinstance(batch, dict):
        return {name: plain(value) for name, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [plain(value) for value in batch]
    return batch


def seeded(seed: int = 5) -> Any:
    return torch.Generator().manual_seed(seed)


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("arguments", ARGUMENTS)
def test_batches_are_torchs_own_epoch_by_epoch(arguments: str, workers: int) -> None:
    given = ARGUMENTS[arguments]
    truth = Torchs(d.Items(40), generator=seeded(), **given)
    loader = DataLoader(d.Items(40), generator=seeded(), num_workers=workers, **given)
    assert len(loader) == len(truth)
    for _ in range(2):
        assert [plain(batch) for batch in loader] == [plain(batch) for batch in truth]
    loader.close()


@pytest.mark.parametrize("workers", [0, 2])
def test_samplers_are_torchs_own(workers: int) -> None:
    from torch.utils.data import BatchSampler, SubsetRandomSampler, WeightedRandomSampler

    for make in (
        lambda: {"sampler": SubsetRandomSampler(range(9), seeded()), "batch_size": 2},
        lambda: {"sampler": WeightedRandomSampler([1.0] * 40, 30, generator=seeded()), "batch_size": 4},
        lambda: {"sampler": [5, 5, 1], "batch_size": 2},
        lambda: {"batch_sampler": BatchSampler([3, 4, 5], 2, False)},
    ):
        found = [plain(batch) for batch in DataLoader(d.Items(40), num_workers=workers, **make())]
        assert found == [plain(batch) for batch in Torchs(d.Items(40), **make())]


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [None, 4])
def test_iterable_datasets_take_turns_as_torchs(workers: int, batch_size: int | None) -> None:
    truth = [plain(batch) for batch in Torchs(d.Stream(23), batch_size=batch_size, num_workers=workers)]
    for persistent in (False, workers > 0):
        loader = DataLoader(d.Stream(23), batch_size=batch_size, num_workers=workers, persistent_workers=persistent)
        for _ in range(2):
            assert [plain(batch) for batch in loader] == truth


def test_the_global_generator_is_drawn_from_as_by_torch() -> None:
    drawn = []
    for kind in (Torchs, DataLoader):
        torch.manual_seed(3)
        found = [plain(batch) for batch in kind(d.Items(20), shuffle=True, batch_size=3)]
        drawn.append((found, torch.rand(()).item()))
    assert drawn[0] == drawn[1]


@pytest.mark.parametrize("dataset", [d.Items(40), d.Stream(41)])
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("taken", [0, 1, 6, 10])
def test_a_state_goes_on(dataset: Any, workers: int, taken: int) -> None:
    shuffle = {} if isinstance(dataset, d.Stream) else {"shuffle": True, "generator": seeded()}
    whole = DataLoader(dataset, batch_size=4, num_workers=workers, **shuffle)
    truth = [[plain(batch) for batch in whole] for _ in range(2)]
    shuffle = {} if isinstance(dataset, d.Stream) else {"shuffle": True, "generator": seeded()}
    first = DataLoader(dataset, batch_size=4, num_workers=workers, **shuffle)
    epoch = iter(first)
    begun = [plain(next(epoch)) for _ in range(taken)]
    state = json.loads(json.dumps(first.state_dict()))
    for others in (0, 1, 3) if not isinstance(dataset, d.Stream) else (workers,):
        shuffle = {} if isinstance(dataset, d.Stream) else {"shuffle": True, "generator": seeded(99)}
        rest = DataLoader(dataset, batch_size=4, num_workers=others, **shuffle)
        rest.load_state_dict(state)
        assert rest.state_dict() == state
        assert begun + [plain(batch) for batch in rest] == truth[0]
        if taken:
            assert [plain(batch) for batch in rest] == truth[1], "the next epoch is the next"


def test_a_state_at_the_end_of_an_epoch_begins_the_next() -> None:
    first = DataLoader(d.Items(12), batch_size=4, shuffle=True, generator=seeded())
    truth = [[plain(batch) for batch in first] for _ in range(2)]
    drawn_from = seeded()
    first = DataLoader(d.Items(12), batch_size=4, shuffle=True, generator=drawn_from)
    assert [plain(batch) for batch in first] == truth[0]
    generator = seeded()
    generator.set_state(drawn_from.get_state())
    rest = DataLoader(d.Items(12), batch_size=4, shuffle=True, generator=generator)
    rest.load_state_dict(first.state_dict())
    assert [plain(batch) for batch in rest] == truth[1]


def test_a_killed_worker_costs_no_batch() -> None:
    truth = [plain(batch) for batch in DataLoader(d.Items(400), batch_size=2)]
    loader = DataLoader(d.Items(400), batch_size=2, num_workers=2)
    found = []
    for number, batch in enumerate(loader):
        found.append(plain(batch))
        if number in (10, 90):
            os.kill(loader.worker_processes()[number % 2], signal.SIGKILL)
    assert found == truth


def test_a_sampler_is_told_the_epoch_also_after_a_resume() -> None:
    from torch.utils.data import DistributedSampler

    def make() -> DataLoader:
        return DataLoader(d.Items(8), batch_size=2, sampler=DistributedSampler(range(8), num_replicas=1, rank=0))

    first = make()
    first.set_epoch(3)
    epoch = iter(first)
    found = [plain(next(epoch)) for _ in range(2)]
    second = make()
    second.load_state_dict(first.state_dict())
    second.set_epoch(3)
    found += [plain(batch) for batch in second]
    assert sorted(at for batch in found for at in batch[1]) == list(range(8))


@pytest.mark.parametrize("workers", [0, 1])
def test_an_iterable_dataset_that_draws_its_order_goes_on_in_it(workers: int) -> None:
    first = DataLoader(d.Shuffled(20), batch_size=2, num_workers=workers)
    epoch = iter(first)
    found = [plain(next(epoch)) for _ in range(4)]
    state = first.state_dict()
    torch.rand(7)
    second = DataLoader(d.Shuffled(20), batch_size=2, num_workers=workers)
    second.load_state_dict(state)
    assert sorted(sum(found + [plain(batch) for batch in second], [])) == list(range(20))


def test_a_killed_worker_of_such_a_dataset_costs_no_item() -> None:
    loader = DataLoader(d.Shuffled(400), batch_size=2, num_workers=1)
    found = []
    for number, batch in enumerate(loader):
        found += plain(batch)
        if number == 20:
            os.kill(loader.worker_processes()[0], signal.SIGKILL)
    assert sorted(found) == list(range(400))


def test_uneven_workers_go_on_in_turn_and_others_are_refused() -> None:
    truth = [plain(batch) for batch in DataLoader(d.Uneven(), batch_size=1, num_workers=3)]
    assert truth == [plain(batch) for batch in Torchs(d.Uneven(), batch_size=1, num_workers=3)]
    first = DataLoader(d.Uneven(), batch_size=1, num_workers=3)
    epoch = iter(first)
    found = [plain(next(epoch)) for _ in range(6)]
    second = DataLoader(d.Uneven(), batch_size=1, num_workers=3)
    second.load_state_dict(first.state_dict())
    assert found + [plain(batch) for batch in second] == truth
    for workers in (0, 2):
        other = DataLoader(d.Uneven(), batch_size=1, num_workers=workers)
        other.load_state_dict(first.state_dict())
        with pytest.raises(fb.InvalidError, match="each worker has its own part"):
            iter(other)


def test_an_item_that_raised_is_passed_over_on_a_resume() -> None:
    first = DataLoader(d.Sour(), batch_size=None, num_workers=1)
    epoch = iter(first)
    assert [next(epoch), next(epoch)] == [0, 1]
    with pytest.raises(KeyError):
        next(epoch)
    assert next(epoch) == 3
    second = DataLoader(d.Sour(), batch_size=None, num_workers=1)
    second.load_state_dict(first.state_dict())
    assert list(second) == [4, 5]


def test_what_has_no_place_and_no_workers_is_refused() -> None:
    loader = DataLoader(d.Items(8), num_workers=1, in_order=False)
    next(iter(loader))
    with pytest.raises(fb.InvalidError, match="in_order=False"):
        loader.state_dict()
    with pytest.raises(ValueError, match="worker processes"):
        DataLoader(d.Stream(3), num_workers=2, worker_method="thread")
    assert [plain(batch) for batch in DataLoader(d.Items(8), num_workers=2, worker_method="thread")] == [
        plain(batch) for batch in Torchs(d.Items(8))
    ]


def test_workers_that_stay_draw_as_torchs_do() -> None:
    given: dict[str, Any] = {"batch_size": 3, "shuffle": True, "num_workers": 1, "persistent_workers": True}
    ours = DataLoader(d.Items(20), generator=seeded(), **given)
    theirs = Torchs(d.Items(20), generator=seeded(), **given)
    for _ in range(3):
        assert [plain(batch) for batch in ours] == [plain(batch) for batch in theirs]


def test_a_state_before_the_first_batch_holds_the_order() -> None:
    torch.manual_seed(5)
    first = DataLoader(d.Items(20), shuffle=True)
    epoch = iter(first)
    state = first.state_dict()
    truth = [plain(batch) for batch in epoch]
    torch.manual_seed(77)
    second = DataLoader(d.Items(20), shuffle=True)
    second.load_state_dict(state)
    assert [plain(batch) for batch in second] == truth


def test_close_ends_the_workers() -> None:
    loader = DataLoader(d.Items(20), num_workers=1)
    next(iter(loader))
    epoch = iter(loader)
    next(epoch)
    assert loader.worker_processes()
    loader.close()
    assert not loader.worker_processes()


def test_large_results_are_used_where_they_lie() -> None:
    loader = DataLoader(d.Pictures(8), batch_size=None, num_workers=1)
    kept = list(loader)
    loader.close()
    for number, picture in enumerate(kept):
        assert (picture == number).all() and not picture.requires_grad
        picture += 1  # Nobody else has it.
        assert (picture == number + 1).all()
    assert len({picture.data_ptr() for picture in kept}) == 8


def test_random_numbers_in_workers_depend_on_the_batch_alone() -> None:
    found = []
    for workers in (1, 2, 3):
        loader = DataLoader(d.Drawing(24), batch_size=3, num_workers=workers, generator=seeded())
        found.append([plain(batch) for batch in loader])
    assert found[0] == found[1] == found[2]
    values = [number for batch in found[0] for column in batch for number in column]
    assert len(set(values)) == 24 * 3


def test_workers_know_who_they_are_and_are_set_up_once() -> None:
    loader = DataLoader(d.Who(40), batch_size=None, num_workers=2, worker_init_fn=d.init_worker, persistent_workers=True)
    for _ in range(2):
        found = list(loader)
        assert {(worker, count) for worker, count, _, _ in found} <= {(0, 2), (1, 2)}
        assert all(marks == [worker] for worker, _, marks, _ in found), "it was called once for each worker"
    assert torch.utils.data.get_worker_info() is None


def test_with_worker_init_fn_random_numbers_are_torchs_own() -> None:
    given: dict[str, Any] = {"batch_size": 3, "num_workers": 2, "worker_init_fn": d.seed_worker}
    truth = [plain(batch) for batch in Torchs(d.Drawing(24), generator=seeded(), **given)]
    assert [plain(batch) for batch in DataLoader(d.Drawing(24), generator=seeded(), **given)] == truth


def test_without_an_order_whatever_comes_first_comes() -> None:
    for dataset, count in ((d.Items(30), 30), (d.Stream(30), 30)):
        loader = DataLoader(dataset, batch_size=None, num_workers=2, in_order=False)
        found = [plain(item) for item in loader]
        assert sorted(found, key=str) == sorted((plain(item) for item in DataLoader(dataset, batch_size=None)), key=str)
        assert len(found) == count


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_dataset_raises_arrives_and_the_rest_comes(workers: int) -> None:
    epoch = iter(DataLoader(d.Failing(6), batch_size=None, num_workers=workers))
    assert [next(epoch) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(KeyError) as raised:
        next(epoch)
    assert raised.value.args == ("three",)
    if workers:
        assert "Failing" in str(raised.value.__cause__) or "__getitem__" in str(raised.value.__cause__)
        assert [next(epoch), next(epoch)] == [4, 5]


def test_a_worker_that_takes_too_long_is_told_of() -> None:
    loader = DataLoader(d.Stuck(3), batch_size=None, num_workers=1, timeout=0.3)
    with pytest.raises(RuntimeError, match="DataLoader timed out after 0.3 seconds"):
        list(loader)


def test_epochs_that_are_broken_off_and_two_at_once() -> None:
    loader = DataLoader(d.Items(40), batch_size=4, num_workers=2)
    truth = [plain(batch) for batch in DataLoader(d.Items(40), batch_size=4)]
    for _ in range(3):
        next(iter(loader))
    assert [plain(batch) for batch in loader] == truth
    assert [(plain(a), plain(b)) for a, b in zip(loader, loader, strict=True)] == list(zip(truth, truth, strict=True))


def test_arguments_are_checked_as_by_torch() -> None:
    items, stream = d.Items(3), d.Stream(3)
    wrong: list[tuple[Any, dict[str, Any]]] = [
        (items, {"num_workers": -1}),
        (items, {"timeout": -1}),
        (items, {"prefetch_factor": 2}),
        (items, {"num_workers": 1, "prefetch_factor": -1}),
        (items, {"persistent_workers": True}),
        (items, {"sampler": [1], "shuffle": True}),
        (items, {"batch_sampler": [[1]], "batch_size": 2}),
        (items, {"batch_size": None, "drop_last": True}),
        (items, {"multiprocessing_context": "spawn"}),
        (items, {"num_workers": 1, "multiprocessing_context": "no such"}),
        (stream, {"shuffle": True}),
        (stream, {"sampler": [1]}),
        (stream, {"batch_sampler": [[1]]}),
    ]
    for dataset, given in wrong:
        with pytest.raises(ValueError) as torchs:
            Torchs(dataset, **given)
        with pytest.raises(ValueError) as ours:
            DataLoader(dataset, **given)
        head = str(torchs.value).split(";")[0].split(",")[0][:40]
        assert str(ours.value).startswith(head), given
    loader = DataLoader(items)
    with pytest.raises(ValueError, match="should not be set after DataLoader is initialized"):
        loader.batch_size = 3


def test_a_graph_of_forebays_takes_the_same_arguments() -> None:
    graph = fb.range(20)
    loader = DataLoader(graph, batch_size=6, shuffle=True, num_workers=2)
    assert len(loader) == 4
    found = [batch["value"] for batch in loader]
    assert all(isinstance(batch, torch.Tensor) for batch in found)
    assert sorted(torch.cat(found).tolist()) == list(range(20))
    assert "random_sampler" in loader.graph.to_line()
    sampled = DataLoader(graph, batch_size=2, sampler=[4, 1, 3])
    assert [batch["value"].tolist() for batch in sampled] == [[4, 1], [3]]
    state = loader.state_dict()
    again = DataLoader(graph, batch_size=6, shuffle=True)
    again.load_state_dict(state)
    with pytest.raises(ValueError, match="worker_init_fn"):
        DataLoader(graph, worker_init_fn=print)


def test_the_graph_of_the_arguments_gives_the_same_items() -> None:
    loader = DataLoader(d.Items(20), batch_size=4, sampler=[3, 1, 2, 0])
    found = [batch for batch in loader.graph.loader(executor="inline")]
    assert found[0]["1"].tolist() == [3, 1, 2, 0]


def test_python_random_is_not_touched_here() -> None:
    random.seed(1)
    expected = random.Random(1).random()
    list(DataLoader(d.Items(4), num_workers=1))
    assert random.random() == expected




def test_a_dataset_shares_objects_of_multiprocessing_and_shared_tensors_with_its_workers() -> None:
    dataset = d.Sharing(8)
    loader = DataLoader(dataset, batch_size=2, num_workers=2)
    for _ in range(2):
        assert len(list(loader)) == 4
    assert dataset.sum.value == 2 * sum(range(8)) and dataset.event.is_set()
    assert sorted(dataset.queue.get(timeout=60) for _ in range(16)) == sorted([*range(8), *range(8)])
    assert list(dataset.numbers) == dataset.shared.tolist() == list(range(8))
    assert dataset.own.tolist() == [0.0] * 8, "what is not shared is the worker's own"
    loader.close()


@pytest.mark.parametrize(
    ("given", "why"), [(multiprocessing.get_context("fork").Lock, "created in a fork context"), (multiprocessing.Pipe, "found a socket")]
)
def test_what_cannot_be_shared_with_workers_is_said(given: Any, why: str) -> None:
    found = given()
    with pytest.raises(fb.InvalidError, match=f"cannot be sent to worker processes: .*{why}"):
        iter(DataLoader([found], num_workers=1))


def numbers(epoch: Any) -> list[int]:
    return [value for batch in epoch for value in batch.tolist()]


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("persistent", [False, True])
def test_torchs_data_pipes_are_cut_among_workers_and_shuffled_anew(workers: int, persistent: bool) -> None:
    from torch.utils.data.datapipes.iter import IterableWrapper

    kept: dict[str, Any] = {"persistent_workers": persistent and workers > 0}
    found = []
    for kind in (Torchs, DataLoader):
        pipe = IterableWrapper(range(12)).shuffle().sharding_filter()
        loader = kind(pipe, batch_size=2, shuffle=True, generator=seeded(), num_workers=workers, **kept)
        found.append([numbers(loader) for _ in range(2)])
    assert found[0] == found[1]
    assert found[1][0] != found[1][1] and sorted(found[1][0]) == list(range(12))


def test_a_profiler_sees_how_long_batches_are_waited_for() -> None:
    loader = DataLoader(d.Items(8), batch_size=4)
    with torch.profiler.profile() as profile:
        list(loader)
    named = [event for event in profile.key_averages() if event.key.startswith("enumerate(DataLoader)#")]
    assert [event.count for event in named] == [3]


@pytest.mark.filterwarnings("ignore:'pin_memory' argument is set as true but no accelerator")
def test_what_torch_refuses_or_warns_of_when_it_begins() -> None:
    with pytest.raises(AssertionError, match="found timeout=3"):
        iter(DataLoader(d.Items(4), timeout=3))
    with pytest.raises(NotImplementedError, match="state_dict"):
        pickle.dumps(iter(DataLoader(d.Items(4))))
    with pytest.warns(UserWarning, match="pin_memory_device is deprecated"):
        iter(DataLoader(d.Items(4), pin_memory=True, pin_memory_device="cuda"))


@pytest.mark.parametrize("persistent", [False, True])
def test_a_dropped_loader_ends_its_workers_without_the_garbage_collector(persistent: bool) -> None:
    gc.disable()
    try:
        loader = DataLoader(d.Items(8), num_workers=1, persistent_workers=persistent)
        epoch = iter(loader)
        next(epoch)
        worker = os.pidfd_open(loader.worker_processes()[0])
        known = weakref.ref(loader)
        del loader
        assert len(list(epoch)) == 7, "whoever has the iterator has its loader"
        del epoch
        assert known() is None
        assert select.select([worker], [], [], 60)[0], "the worker has ended"
        os.close(worker)
    finally:
        gc.enable()


def test_without_an_order_a_worker_that_is_stuck_holds_up_no_other() -> None:
    dataset = d.Held()
    loader = DataLoader(dataset, batch_size=None, num_workers=2, in_order=False, timeout=100)
    epoch = iter(loader)
    assert [next(epoch) for _ in range(10)] == [0] * 10
    dataset.let_go.set()
    assert list(epoch) == [1] * 10
    loader.close()


def test_no_worker_has_two_batches_while_another_has_none() -> None:
    assert [plain(batch) for batch in DataLoader(d.Barrier(4), num_workers=4)] == [[0], [1], [2], [3]]


@pytest.mark.parametrize("persistent", [False, True])
def test_workers_are_shut_down_by_the_name_that_torch_has_for_it(persistent: bool) -> None:
    loader = DataLoader([0, 1, 2, 3], num_workers=1, persistent_workers=persistent)
    for _ in range(2):
        epoch: Any = iter(loader)
        next(epoch)
        epoch._shutdown_workers()
        epoch._shutdown_workers()
        assert list(epoch) == []
    assert [plain(batch) for batch in loader] == [[0], [1], [2], [3]]
