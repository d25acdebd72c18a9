"""Loaders: the same samples however they run, from any place on, and nothing left behind."""

from __future__ import annotations

import gc
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import weakref
from pathlib import Path
from typing import Any

import pytest

import forebay as fb

EXECUTORS = ["inline", "threads:1", "threads:3", "processes:2"]


def dataset() -> fb.Dataset:
    return fb.range(200).shuffle(50).batch(7)


def values(batches: object) -> list[list[int]]:
    return [batch["value"].tolist() for batch in batches]  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def truth() -> list[list[int]]:
    found = values(dataset().loader(executor="inline", seed=3))
    assert len(found) == 29 and sorted(sum(found, [])) == list(range(200))
    return found


@pytest.mark.parametrize("executor", EXECUTORS)
def test_every_executor_gives_the_same(executor: str, truth: list[list[int]]) -> None:
    with dataset().loader(executor=executor, seed=3) as loader:
        assert len(loader) == 29
        assert values(loader) == truth
        assert values(loader) != truth, "the next epoch has another order"


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("taken", [0, 1, 13, 29])
def test_a_state_goes_on_on_every_other_executor(executor: str, taken: int, truth: list[list[int]]) -> None:
    with dataset().loader(executor="threads:2", seed=3) as loader:
        epoch = iter(loader)
        assert values(next(epoch) for _ in range(taken)) == truth[:taken]
        state = json.loads(json.dumps(loader.state_dict()))
    with dataset().loader(executor=executor, seed=3) as loader:
        loader.load_state_dict(state)
        assert loader.state_dict() == state
        epoch = iter(loader)
        assert (epoch.epoch, epoch.start) == (0, taken)
        assert values(epoch) == truth[taken:]


def test_the_state_of_an_epoch_that_is_over_begins_the_next() -> None:
    with dataset().loader(seed=3, epochs=2) as loader:
        list(loader)
        state, second = loader.state_dict(), values(loader)
    with dataset().loader(seed=3, epochs=2) as loader:
        loader.load_state_dict(state)
        assert values(loader) == second
    with dataset().loader(seed=3, epochs=2) as loader:
        loader.load_state_dict(state)
        assert [epoch.epoch for epoch in map(_read, loader.epochs())] == [1]


def _read(epoch: fb.Epoch) -> fb.Epoch:
    list(epoch)
    return epoch


def test_states_of_others_are_refused() -> None:
    with dataset().loader(seed=3) as loader, dataset().loader(seed=4) as other:
        next(iter(loader))
        other.load_state_dict(loader.state_dict())
        with pytest.raises(fb.InvalidError, match="seed"):
            iter(other)
        with pytest.raises(fb.InvalidError, match="state_dict"):
            other.load_state_dict({"epoch": 3})


def test_epochs_counts_and_set_epoch_goes_back() -> None:
    with dataset().loader(seed=3, epochs=3) as loader:
        assert [epoch.epoch for epoch in map(_read, loader.epochs())] == [0, 1, 2]
        loader.set_epoch(1)
        again = iter(loader)
        assert again.epoch == 1
        list(again)
        assert next(again, None) is None, "an epoch that is over stays over"


def test_an_epoch_that_another_took_the_place_of_is_over(truth: list[list[int]]) -> None:
    with dataset().loader(seed=3) as loader:
        first = iter(loader)
        next(first)
        loader.set_epoch(0)
        second = iter(loader)
        assert list(first) == []
        assert values(second) == truth


def test_ranks_share_the_data() -> None:
    found: list[int] = []
    for rank in range(3):
        with fb.range(99).shuffle(10).batch(4).loader(ranks=(rank, 3)) as loader:
            found += sum(values(loader), [])
    assert sorted(found) == list(range(99))


def test_ranks_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with fb.range(10).batch(5).loader(ranks="env") as loader:
        assert values(loader) == [[1, 3, 5, 7, 9]]
    monkeypatch.delenv("RANK")
    with pytest.raises(fb.InvalidError, match="RANK"):
        fb.range(10).loader(ranks="env")


def test_without_shuffling() -> None:
    with dataset().loader(shuffles=False) as loader:
        assert values(loader)[0] == [0, 1, 2, 3, 4, 5, 6]


def test_length_is_told_where_it_is_known() -> None:
    with fb.range(10).repeat().loader() as loader:
        with pytest.raises(TypeError, match="is endless"):
            len(loader)
        assert loader


@pytest.mark.parametrize("executor", EXECUTORS)
def test_loaders_that_are_dropped_in_the_middle_of_an_epoch_are_collected(executor: str) -> None:
    cycles = 5 if executor.startswith("processes") else 100
    before = len(threads())
    for cycle in range(cycles):
        loader = fb.range(1_000_000).shuffle(100).batch(8).loader(executor=executor)
        for number, _ in enumerate(loader):
            if number == cycle % 3:
                break
        gone = weakref.ref(loader)
        del loader, _
        gc.collect()
        assert gone() is None
    # Another thread waits for those of the last ones.
    for _ in range(1_000_000):
        if len(threads()) <= before:
            break
        os.sched_yield()
    assert len(threads()) <= before, threads()


def threads() -> list[str]:
    found = []
    for task in Path("/proc/self/task").iterdir():
        try:
            found.append((task / "comm").read_text().strip())
        except OSError:
            pass
    return found


def test_a_closed_loader_says_so() -> None:
    loader = dataset().loader(num_workers=1)
    next(iter(loader))
    loader.close()
    loader.close()
    with pytest.raises(RuntimeError, match="closed"):
        iter(loader)


def test_threads_share_an_iterator_and_get_each_batch_once() -> None:
    with fb.range(4000).batch(4).loader(num_workers=2) as loader:
        epoch, found = iter(loader), []
        lock = threading.Lock()

        def take() -> None:
            for batch in epoch:
                with lock:
                    found.extend(batch["value"].tolist())

        takers = [threading.Thread(target=take) for _ in range(4)]
        for taker in takers:
            taker.start()
        for taker in takers:
            taker.join()
    assert sorted(found) == list(range(4000))


def test_a_killed_worker_costs_no_sample(truth: list[list[int]]) -> None:
    graph = fb.range(200).shuffle(50, on="threads").map("twice = value * 2").batch(7)
    with graph.loader(executor="inline", seed=3) as loader:
        whole = values(loader)
    with graph.loader(executor="processes:2", seed=3) as loader:
        found = []
        for batch in loader:
            found.append(batch["value"].tolist())
            if len(found) == 3:
                for process in loader._native.worker_processes():
                    os.kill(process, signal.SIGKILL)
    assert found == whole == truth


def test_datasets_and_loaders_are_pickled_as_data(truth: list[list[int]]) -> None:
    again = pickle.loads(pickle.dumps(dataset()))
    assert again == dataset() and hash(again) == hash(dataset()) and {again: 1}[dataset()] == 1
    with dataset().loader(num_workers=1, seed=3) as loader:
        epoch = iter(loader)
        next(epoch)
        other = pickle.loads(pickle.dumps(loader))
    with other:
        assert values(other) == truth[1:]


def child(code: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-W", "error", "-X", "faulthandler", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        **settings,
    )


def test_a_program_that_ends_in_the_middle_of_an_epoch_ends_quietly() -> None:
    for executor in EXECUTORS:
        code = (
            "import forebay as fb\n"
            f"loader = fb.range(10**9).shuffle(100).batch(8).loader(executor={executor!r})\n"
            "kept = iter(loader)\nprint(next(kept)['value'].shape)\n"
        )
        done = child(code)
        assert (done.returncode, done.stdout, done.stderr) == (0, "(8,)\n", ""), executor


def test_import_starts_no_thread_and_says_nothing() -> None:
    done = child("import forebay, os\nprint(len(os.listdir('/proc/self/task')))")
    assert (done.returncode, done.stdout, done.stderr) == (0, "1\n", "")


def test_a_fork_is_told_that_its_loader_is_not_there() -> None:
    code = (
        "import forebay as fb, os, sys\n"
        "loader = fb.range(10**9).batch(8).loader(num_workers=2)\n"
        "next(iter(loader))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    try:\n"
        "        loader.state_dict()\n"
        "    except RuntimeError as error:\n"
        "        ok = 'before a fork' in str(error)\n"
        "    del loader\n"
        "    os._exit(0 if ok and next(iter(fb.range(3).loader(num_workers=1)))['value'] == 0 else 1)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), next(iter(loader))['value'].shape)\n"
    )
    done = child(code)
    assert (done.returncode, done.stdout) == (0, "0 (8,)\n"), done


STUCK = """
import forebay as fb, os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # Behind nohup it is ignored.
path = sys.argv[1]
os.mkfifo(path)
writer = os.open(path, os.O_RDWR)
loader = fb.files(path).lines().loader(num_workers=1)
"""
CAUGHT = """
try:
    print('waits', flush=True)
    next(iter(loader))
except KeyboardInterrupt:
    print('interrupted', loader.state_dict()['forebay'], flush=True)
"""


@pytest.mark.parametrize(
    ("code", "said", "status"),
    [(CAUGHT, "interrupted 1\n", 0), ("print('waits', flush=True)\nnext(iter(loader))\n", "", -signal.SIGINT)],
)
def test_an_interrupt_ends_a_wait_and_the_program(tmp_path: Path, code: str, said: str, status: int) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK + code, str(tmp_path / "pipe")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        try:
            rest, _ = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert (rest, process.returncode) == (said, status)


def test_a_state_says_which_epoch_was_named() -> None:
    with dataset().loader(executor="inline", seed=3) as loader:
        next(iter(loader))
        loader.load_state_dict({})
        state = loader.state_dict()
        first = values(loader)
        loader.set_epoch(4)
        fourth = loader.state_dict()
        assert values(loader) != first
    for taken, epoch in ((state, 0), (fourth, 4)):
        with dataset().loader(executor="inline", seed=3) as other:
            other.load_state_dict(taken)
            assert other.state_dict() == taken
            assert iter(other).epoch == epoch


def test_a_loader_is_copied_again_and_again() -> None:
    import copy

    with dataset().loader(executor="inline", seed=3) as loader:
        copies = [copy.copy(loader), copy.copy(loader)]
        assert values(copies[0]) == values(copies[1]) == values(loader)


def test_a_dropped_loader_is_gone_without_the_garbage_collector() -> None:
    gc.disable()
    try:
        loader = fb.range(100).loader(num_workers=1)
        next(iter(loader))
        known = weakref.ref(loader)
        del loader
        assert known() is None, "its threads and what they hold end with it"
    finally:
        gc.enable()
