"""Batches on a device. There may be none here: torch's "meta" takes its place, and stand-ins those of streams and pinned memory."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import pickle
import signal
import threading
import warnings
import weakref
from collections import Counter
from collections.abc import Iterator
from typing import Any

import functions_of_tests as f
import pytest

import forebay as fb
from forebay import _device

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")

EXECUTORS = ["inline", "threads:2", "processes:2"]
COUNT = 10


def make(executor: str, **settings: Any) -> fb.Loader:
    return fb.range(4 * COUNT).shuffle(10).map(f.double).batch(4).loader(executor=executor, seed=5, **settings)


def values(batches: Iterator[Any]) -> list[list[int]]:
    return [batch["value"].tolist() for batch in batches]


def place(state: dict[str, Any]) -> tuple[int, int, bool]:
    """Epoch, how many batches of it were delivered, and whether it had ended."""
    snapshot = json.loads(state["snapshot"])
    return snapshot["epoch"], snapshot["delivered"], snapshot["ended"]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_state_counts_what_was_given_and_not_what_is_on_its_way(executor: str) -> None:
    truth = values(iter(make("inline")))
    for taken in range(COUNT + 1):
        with make(executor).to("meta") as loader:
            batches = iter(loader)
            for _ in range(taken):
                assert next(batches)["value"].device.type == "meta"
            state = loader.state_dict()
        assert place(state) == (0, taken, False)
        with make("inline") as plain:
            plain.load_state_dict(state)
            assert values(iter(plain)) == truth[taken:]


def test_one_batch_is_taken_ahead() -> None:
    with make("inline").to("meta") as loader:
        for taken, _ in enumerate(loader, start=1):
            assert place(loader.state_dict())[1] == taken
            assert json.loads(loader._native.snapshot())["delivered"] == min(taken + 1, COUNT)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_states_around_the_end_are_those_of_a_loader_that_takes_nothing_ahead(executor: str) -> None:
    def states(loader: fb.Loader) -> list[tuple[int, int, bool]]:
        found = []
        for epoch in loader.epochs():
            found.append(place(loader.state_dict()))
            for _ in epoch:
                found.append(place(loader.state_dict()))
            found.append(place(loader.state_dict()))
        return found

    with make(executor, epochs=2) as plain, make(executor, epochs=2).to("meta") as ahead:
        assert states(ahead) == states(plain)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_an_epoch_that_is_left_goes_on_after_the_last_batch_that_was_given(executor: str) -> None:
    truth = values(iter(make("inline")))
    with make(executor).to("meta") as loader:
        for _, _ in zip(range(3), loader, strict=False):
            pass
        state, again = loader.state_dict(), pickle.loads(pickle.dumps(loader))
    assert place(state) == (0, 3, False)
    with again:
        assert [batch["value"].device.type for batch in again] == ["meta"] * (COUNT - 3)
    with make("inline") as plain:
        plain.load_state_dict(state)
        assert values(iter(plain)) == truth[3:]


@pytest.mark.parametrize("error", [ValueError, TimeoutError])
@pytest.mark.parametrize("executor", ["inline", "threads:1", "processes:1"])
def test_an_error_comes_after_the_batches_before_it(executor: str, error: type[Exception]) -> None:
    graph = fb.range(20).map(f.value_error_at_10 if error is ValueError else f.timeout_error_at_10).batch(2)
    with graph.loader(executor=executor).to("meta") as loader:
        batches = iter(loader)
        assert [next(batches)["value"].shape for _ in range(5)] == [(2,)] * 5
        assert place(loader.state_dict()) == (0, 5, False)
        with pytest.raises(error, match="meant"):
            next(batches)
        assert place(loader.state_dict()) == (0, 5, False)
        assert next(batches, None) is None


def test_what_cannot_be_copied_is_not_counted_as_given(monkeypatch: pytest.MonkeyPatch) -> None:
    with make("inline").to("meta") as loader:
        assert loader._copies is not None
        begin, calls = loader._copies.begin, []

        def full(batch: Any) -> Any:
            calls.append(batch)
            if len(calls) == 3:
                raise MemoryError("meant")
            return begin(batch)

        monkeypatch.setattr(loader._copies, "begin", full)
        batches = iter(loader)
        next(batches), next(batches)
        with pytest.raises(MemoryError, match="meant"):
            next(batches)
        assert place(loader.state_dict()) == (0, 2, False)
        next(batches)
        assert place(loader.state_dict()) == (0, 4, False)


def test_two_threads_get_each_batch_once() -> None:
    class Counted(_device.Copies):
        def finish(self, there: Any, event: Any) -> Any:
            found.append(int(there["value"][0]))
            return there

    found: list[int] = []
    with fb.range(2000).batch(1).loader(num_workers=1, output="torch") as loader:
        loader._copies = Counted(torch.device("cpu"))
        batches = iter(loader)
        threads = [threading.Thread(target=lambda: [None for _ in batches]) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert Counter(found) == Counter(range(2000))


def test_on_the_processor_batches_are_what_they_were() -> None:
    with make("inline", output="torch") as plain, make("inline").to("cpu") as loader:
        assert values(iter(loader)) == values(iter(plain))
        assert loader._ahead is None and len(loader) == COUNT
        assert [next(iter(loader))["value"].device.type for _ in range(2)] == ["cpu", "cpu"]


def test_another_output_has_no_device() -> None:
    with make("inline", output="numpy") as loader, pytest.raises(fb.InvalidError, match="output is 'numpy', expected 'torch'"):
        loader.to("meta")


class Event:
    """Stands in for CUDA's: it has passed when the test says so."""

    def __init__(self) -> None:
        self.passed = False
        self.awaited = 0

    def query(self) -> bool:
        return self.passed

    def synchronize(self) -> None:
        self.awaited += 1


class Streams(_device.Streams):
    """Stands in for CUDA's, which no machine of these tests has: notes what it is asked for."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.said: list[str] = []

    @contextlib.contextmanager
    def copying(self) -> Iterator[None]:
        self.said.append("copy")
        yield
        self.said.append("copied")

    def mark(self) -> Event:
        self.said.append("mark")
        self.events.append(Event())
        return self.events[-1]

    def wait(self, event: Event) -> None:
        self.said.append(f"wait {self.events.index(event)}")

    def use(self, tensor: Any) -> None:
        self.said.append("use")


def test_the_next_copy_is_begun_before_a_batch_is_used_and_what_it_reads_is_kept_until_it_is_done() -> None:
    streams = Streams()
    copies = _device.Copies(torch.device("meta"), streams)
    kept = [torch.zeros(2) for _ in range(4)]
    batches = iter([*({"a": one, "b": [one]} for one in kept), None])
    ahead = _device.Ahead(lambda waits: next(batches), copies, 0)
    begin = ["copy", "mark", "copied"]
    assert ahead.take()["a"].device.type == "meta"
    assert streams.said == [*begin, "wait 0", "use", "use", *begin]
    streams.said.clear()
    ahead.take()
    assert streams.said == ["wait 1", "use", "use", *begin]
    assert [source["a"] is one for (_, source), one in zip(copies._read, kept, strict=False)] == [True] * 3
    streams.events[0].passed = streams.events[1].passed = True
    ahead.take()  # Begins the last copy, and lets go of the first two.
    assert [source["a"] is one for (_, source), one in zip(copies._read, kept[2:], strict=True)] == [True] * 2
    assert (ahead.take() is not None, ahead.take()) == (True, None)
    del ahead, copies
    assert [event.awaited for event in streams.events] == [0, 0, 1, 1]


def nested() -> fb.Batch:
    """A batch of structs and lists, whose last field is text."""
    samples = [{"a": {"b": numpy.arange(3.0) + at, "c": at}, "d": [numpy.ones(2), numpy.full(3, at)], "e": str(at)} for at in range(2)]
    with fb.from_list(samples).batch(2).loader(executor="inline") as loader:
        found = next(iter(loader))
    assert isinstance(found, fb.Batch)
    return found


def shape(value: Any) -> Any:
    """A batch without its numbers."""
    if isinstance(value, torch.Tensor):
        return f"{value.device.type} {list(value.shape)}"
    if isinstance(value, dict):
        return {name: shape(item) for name, item in value.items()}
    return [shape(item) for item in value] if isinstance(value, list) else value


def shape_on(device: str) -> Any:
    return {"a": {"b": f"{device} [2, 3]", "c": f"{device} [2]"}, "d": [[f"{device} [2]", f"{device} [3]"]] * 2, "e": ["0", "1"]}


def test_a_batch_moves_with_all_that_is_in_it() -> None:
    batch = nested()
    assert shape(batch.to("meta")) == shape_on("meta")
    here = batch.to(torch.device("cpu"), non_blocking=True)
    assert type(here) is dict and shape(here) == shape_on("cpu")
    assert here["a"]["b"].tolist() == [[0, 1, 2], [1, 2, 3]] and here["d"][1][1].tolist() == [1, 1, 1]
    assert here["a"]["b"].data_ptr() == batch["a"]["b"].ptr


def test_lightning_moves_a_batch() -> None:
    move = pytest.importorskip("lightning.fabric.utilities.apply_func").move_data_to_device
    assert shape(move(nested(), torch.device("meta"))) == shape_on("meta")


def test_accelerate_moves_a_batch() -> None:
    send = pytest.importorskip("accelerate.utils").send_to_device
    assert shape(send(nested(), torch.device("meta"), non_blocking=True)) == shape_on("meta")


def test_torchs_thread_pins_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def pin(tensor: Any) -> Any:
        """Stands in for pinned memory, which a machine without an accelerator has none of."""
        seen.append(list(tensor.shape))
        return tensor

    monkeypatch.setattr(torch.Tensor, "pin_memory", pin)
    batch = nested()
    assert shape(torch.utils.data._utils.pin_memory.pin_memory(batch)) == shape_on("cpu")
    assert seen == [[2, 3], [2], [2], [3], [2], [3]]


class Pinned(_device.Pinned):
    """Stands in for pinned memory: blocks are of the usual memory, and copies are counted."""

    def __init__(self, stocks: bool = True) -> None:
        super().__init__(stocks)
        self.copies = 0
        self.made: list[Any] = []
        self.places: set[int] = set()

    def _empty(self, size: int) -> Any:
        self.made.append(weakref.ref(block := torch.empty(size, dtype=torch.uint8)))
        self.places.add(block.data_ptr())
        return block

    def _copied(self, tensor: Any) -> Any:
        self.copies += 1
        return tensor.clone()

    def blocks(self) -> list[Any]:
        return [block for made in self.made if (block := made()) is not None]


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_device, "has_accelerator", lambda: True)
    monkeypatch.setattr(_device, "Pinned", Pinned)


def pinning(executor: str, **settings: Any) -> fb.Loader:
    """Batches of 8 KiB and more, and a last one of 4 KiB."""
    graph = fb.range(20 * 1024 + 512).batch(1024)
    return graph.loader(executor=executor, output="torch", pin_memory=True, **settings)


def pinned_of(loader: fb.Loader) -> Pinned:
    assert isinstance(loader._pinned, Pinned)
    return loader._pinned


@pytest.mark.usefixtures("stand_in")
def test_batches_are_made_in_pinned_memory() -> None:
    with pinning("inline") as loader:
        pinned = pinned_of(loader)
        for at, batch in enumerate(loader):
            assert batch["value"].tolist() == list(range(1024 * at, min(1024 * (at + 1), 20 * 1024 + 512)))
            # The first is copied: nobody knew how long it would be.
            assert at == 0 or batch["value"].data_ptr() in pinned.places
            assert pinned.copies == 1 and len(pinned.blocks()) <= 3


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("executor", ["threads:1", "threads:3"])
def test_threads_make_batches_in_pinned_memory(executor: str) -> None:
    with pinning(executor, ahead=2) as loader:
        for _ in range(2):
            kept = list(loader)
            assert torch.cat([batch["value"] for batch in kept]).tolist() == list(range(20 * 1024 + 512))
        # Few were made before a block was there.
        assert pinned_of(loader).copies < 21


@pytest.mark.usefixtures("stand_in")
def test_no_block_outlives_its_loader_and_its_batches() -> None:
    loader = pinning("threads:1")
    pinned = pinned_of(loader)
    batches = list(loader)
    lie = {batch["value"].data_ptr() for batch in batches}
    loader.close()
    loader._pinned = None
    pinned.stock = fb._native.Stock()
    del loader
    gc.collect()
    assert {block.data_ptr() for block in pinned.blocks()} <= lie
    del batches
    assert pinned.blocks() == []


@pytest.mark.usefixtures("stand_in")
def test_what_processes_made_is_copied_into_pinned_memory_once() -> None:
    graph = fb.range(4096).map(f.double).batch(1024)
    with graph.loader(executor="processes:1", output="torch", pin_memory=True) as loader:
        assert torch.cat([batch["value"] for batch in loader]).tolist() == list(range(0, 8192, 2))
        assert (pinned_of(loader).copies, pinned_of(loader).made) == (4, [])


@pytest.mark.usefixtures("stand_in")
def test_a_pinned_batch_goes_to_a_device() -> None:
    with pinning("inline").to("meta") as loader:
        assert [batch["value"].device.type for batch in loader] == ["meta"] * 21
        assert pinned_of(loader).copies == 1


def test_what_others_have_too_or_does_not_fill_a_block_is_copied() -> None:
    pinned = Pinned()
    with fb.range(4).batch(2).loader(executor="inline") as loader:
        ours, short = (batch["value"] for batch in loader)
    with fb.from_list([{"value": numpy.arange(9)}]).loader(executor="inline") as loader:
        theirs = next(iter(loader))["value"]
    assert ours.writable and not theirs.writable
    blocks = {array.ptr: torch.zeros(size, dtype=torch.uint8) for array, size in ((ours, 16), (theirs, 100), (short, 15))}
    pinned._blocks.update(blocks)
    assert pinned.of([ours])[0].data_ptr() == blocks[ours.ptr].data_ptr() and pinned.copies == 0
    assert pinned.of([theirs, short])[1].tolist() == [2, 3] and pinned.copies == 2


def test_blocks_of_lengths_that_do_not_come_again_are_let_go() -> None:
    stock = fb._native.Stock()
    blocks = [torch.empty(100 + at, dtype=torch.uint8) for at in range(9)]
    for block in blocks:
        stock.add(block, block.data_ptr(), block.numel())
    assert [stock.waiting(100 + at) for at in range(9)] == [0] + [1] * 8


def test_without_an_accelerator_pin_memory_warns_as_torch_does() -> None:
    if torch.accelerator.is_available():
        pytest.skip("there is one")
    with warnings.catch_warnings(record=True) as theirs:
        warnings.simplefilter("always")
        iter(torch.utils.data.DataLoader([1], pin_memory=True))
    with pinning("inline") as loader:
        for _ in range(2):
            with pytest.warns(UserWarning) as ours:
                batches = iter(loader)
            assert [str(one.message) for one in ours] == [str(one.message) for one in theirs]
            assert ours[0].filename == __file__
        assert next(batches)["value"].tolist() == list(range(1024))


def test_pinned_memory_is_torchs() -> None:
    with pytest.raises(fb.InvalidError, match="pin_memory=True and output='numpy', expected output='torch'"):
        fb.range(9).loader(output="numpy", pin_memory=True)


def test_states_after_the_death_of_a_worker_with_state_are_those_of_what_was_given() -> None:
    graph = fb.range(200).shuffle(20, on="process").batch(4)
    truth = values(iter(graph.loader(executor="inline", seed=5)))
    with graph.loader(num_workers=1, seed=5, ahead=1).to("meta") as loader:
        states = []
        for taken, _ in enumerate(loader, start=1):
            states.append(loader.state_dict())
            if taken in (5, 6, 30):
                for worker in loader.worker_processes():
                    os.kill(worker, signal.SIGKILL)
    assert [place(state)[1] for state in states] == list(range(1, 51))
    for taken, state in enumerate(states, start=1):
        with graph.loader(executor="inline", seed=5) as plain:
            plain.load_state_dict(state)
            assert values(iter(plain)) == truth[taken:]
