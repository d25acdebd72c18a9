"""How loaders with functions end: dropped, interrupted, forked, crashed, or left behind when the program ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import functions_of_tests as f
import pytest

START = f"""
import gc, os, signal, sys, threading
from pathlib import Path
sys.path[:0] = [{str(Path(f.__file__).parent)!r}]
import functions_of_tests as f
import forebay as fb
"""


def child(code: str, *args: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-X", "faulthandler", "-c", START + code, *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def ends_well(code: str, said: str, *args: str) -> None:
    done = child(code, *args)
    assert (done.returncode, done.stdout, done.stderr) == (0, said, "")


DROPPED = """
def children_of(task):
    try:
        return len(Path(f"/proc/self/task/{task}/children").read_text().split())
    except (FileNotFoundError, ProcessLookupError):
        return 0  # It has ended since it was listed.

def of_this():
    tasks = os.listdir("/proc/self/task")
    return len(tasks), sum(map(children_of, tasks)), len(os.listdir("/proc/self/fd"))

def drop(cycle, graph, executor):
    loader = graph.loader(executor=executor)
    for number, _ in enumerate(loader):
        if number == cycle % 3:
            break

numbers = fb.range(10**9)
here = numbers.map(f.double, on="threads").filter(f.odd_half, on="threads").batch(3)
source = fb.from_iterable(f.Counter(10**9), on="threads", version="1").shuffle(9).batch(3)
away = numbers.map(f.double).batch(3)
drop(0, away, "processes:1")  # What is made once is there now.
drop(0, here, "threads:2")
gc.collect()
# Another thread waits for those that were dropped.
wait = lambda most: any(all(a <= b for a, b in zip(of_this(), most)) or os.sched_yield() for _ in range(10**6))
assert wait((1, 0, 10**6)), of_this()
before = of_this()
for cycle in range(1000):
    if cycle % 33 == 0:
        drop(cycle, away, "processes:1" if cycle % 2 else "threads:1")
    elif cycle % 4 == 0:
        drop(cycle, here, "threads:2" if cycle % 8 else "inline")
    elif cycle % 4 == 1:
        drop(cycle, source, "threads:1")
    else:
        drop(cycle, numbers.shuffle(9).batch(3), "threads:2" if cycle % 8 == 2 else "inline")
    if cycle % 10 == 0:
        gc.collect()
gc.collect()
assert wait(before), (before, of_this())
print("all gone")
"""


def test_a_thousand_loaders_that_are_dropped_leave_nothing() -> None:
    ends_well(DROPPED, "all gone\n")


COLLECTED = """
for executor in ("processes:1", "threads:1"):
    garbage = iter(fb.range(9).map(f.double).loader(executor=executor))
    next(garbage)
    del garbage
    try:
        list(fb.range(9).map(f.collect_as_it_is_read).loader(executor=executor))
    except f.Collecting as error:
        print(error)
"""


def test_a_loader_is_collected_while_an_exception_is_read() -> None:
    """Once a deadlock: both take the lock of what is known about functions."""
    ends_well(COLLECTED, "collected\n" * 2)


SHARED = """
for executor, place in (("inline", "threads"), ("threads:3", "threads"), ("processes:2", "process")):
    epoch = iter(fb.range(4000).map(f.double, on=place).filter(f.odd_half, on=place).loader(executor=executor))
    found, begin = [], threading.Barrier(2)
    def take():
        begin.wait()
        found.extend(sample["value"] for sample in epoch)
    takers = [threading.Thread(target=take) for _ in range(2)]
    [taker.start() for taker in takers]
    [taker.join() for taker in takers]
    assert sorted(found) == [2 * value for value in range(1, 4000, 2)], executor
print("each once")
"""


def test_two_threads_share_an_iterator_with_functions() -> None:
    ends_well(SHARED, "each once\n")


FORKED = """
loaders = [fb.range(10**9).map(f.double, on=place).loader(executor=e) for e, place in (("threads:2", "threads"), ("processes:1", "process"))]
epochs = [iter(loader) for loader in loaders]
assert [next(epoch)["value"] for epoch in epochs] == [0, 0]
child = os.fork()
if child == 0:
    status = 1
    try:
        for epoch in epochs:
            try:
                next(epoch)
            except RuntimeError as error:
                assert "before a fork" in str(error)
            else:
                raise AssertionError("a loader of another process went on")
        del epochs, epoch, loaders
        gc.collect()
        for e, place in (("inline", "threads"), ("threads:2", "threads"), ("processes:1", "process")):
            assert [s["value"] for s in fb.range(3).map(f.double, on=place).loader(executor=e)] == [0, 2, 4]
        status = 0
    finally:
        os._exit(status)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), [next(epoch)["value"] for epoch in epochs])
"""


def test_a_fork_leaves_live_loaders_with_functions_alone() -> None:
    ends_well(FORKED, "0 [2, 2]\n")


LEFT = """
kept = []
for executor, place in (("inline", "threads"), ("threads:2", "threads"), ("processes:2", "process")):
    kept.append(iter(fb.range(10**9).map(f.double, on=place).batch(3).loader(executor=executor)))
    kept.append(iter(fb.from_iterable(f.Counter(10**9), on=place, version="1").loader(executor=executor)))
print([len(next(epoch)) for epoch in kept])
print(*[process for epoch in kept for process in epoch._loader.worker_processes()])
"""


def test_a_program_ends_with_live_loaders_with_functions() -> None:
    done = child(LEFT)
    said, processes = done.stdout.splitlines()
    assert (done.returncode, said, done.stderr) == (0, "[1, 2, 1, 2, 1, 2]", "")
    assert len(processes.split()) >= 3
    for process in processes.split():
        with pytest.raises(ProcessLookupError):
            os.kill(int(process), 0)


SLOW = """
signal.signal(signal.SIGINT, signal.default_int_handler)  # Behind nohup it is ignored.
executor, place = sys.argv[1:]
loader = fb.range(10**9).map(f.slow, on=place).loader(executor=executor)
seen = 0
try:
    for sample in loader:
        seen += 1
        print("waits", flush=True)
except KeyboardInterrupt:
    assert seen == 1 and loader.state_dict()["forebay"] == 1
    print("interrupted", flush=True)
"""


@pytest.mark.parametrize(("executor", "place"), [("inline", "threads"), ("threads:2", "threads"), ("processes:2", "process")])
def test_an_interrupt_ends_a_loop_over_a_slow_function(executor: str, place: str) -> None:
    """The second sample takes a minute, and the interrupt is heard at once: long before that, on a busy machine too."""
    command = [sys.executable, "-c", START + SLOW, executor, place]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "waits\n"
        process.send_signal(signal.SIGINT)
        try:
            rest, errors = process.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    assert (rest, process.returncode) == ("interrupted\n", 0), errors


CRASHED = """
import faulthandler
assert faulthandler.is_enabled()
graph = fb.range(9).map(f.crash_at_3, on_error=sys.argv[1])
with graph.loader(executor="processes:1") as loader:
    try:
        print([sample["value"] for sample in loader])
        (lost,) = loader.quarantine()
        print(lost.key, type(lost.error).__name__)
    except fb.WorkerDied as error:
        print(error)
assert faulthandler.is_enabled()
print([sample["value"] for sample in fb.range(3).map(f.double).loader(executor="processes:1")])
"""


def test_a_worker_that_crashes_ends_nothing_but_its_sample_with_faulthandler_on() -> None:
    done = child(CRASHED, "quarantine")
    left = "[0, 1, 2, 4, 5, 6, 7, 8]\nrange#3 WorkerDied\n[0, 2, 4]\n"
    assert (done.returncode, done.stdout) == (0, left), done.stderr
    done = child(CRASHED, "fail")
    died, after = done.stdout.splitlines()
    assert (done.returncode, after) == (0, "[0, 2, 4]"), done.stderr
    assert "SIGSEGV" in died and "sample range#3" in died and "py_map" in died, died


ASKS_ITSELF = """
loader = None
def ask(sample):
    for wish in (lambda: next(iter(loader)), lambda: next(epoch), loader.state_dict, loader.close, loader.stats):
        try:
            wish()
        except RuntimeError as error:
            assert "asked for this loader, which waits for that function" in str(error), error
        else:
            raise AssertionError("it was answered")
    return sample

def ask_outer(sample):
    # By way of a loader of its own, whose function runs on this thread too.
    inner = fb.range(1).map(ask, on="threads").loader(executor="inline")
    return {"value": [one["value"] for one in inner]}

for asking in (ask, ask_outer):
    loader = fb.range(20).map(asking, on="threads").loader(executor=sys.argv[1])
    epoch = iter(loader)
    assert len(list(epoch)) == 20
print("answered")
"""


@pytest.mark.parametrize("executor", ["inline", "threads:2"])
def test_a_function_that_asks_for_its_own_loader_is_told_so(executor: str) -> None:
    ends_well(ASKS_ITSELF, "answered\n", executor)


LARGE = """
def large(sample):
    return {"value": bytes(4 << 20) if sample["value"] % 2 else memoryview(bytearray(4 << 20)).cast("d")}
def size(sample):
    return {"value": len(sample["value"]) if isinstance(sample["value"], bytes) else sample["value"].shape[0] * 8}
graph = fb.range(160).map(large, on="threads").map(size, on="threads")
sys.setswitchinterval(1e-6)
with graph.loader(executor="threads:4", budget="8MiB", _chunk=16) as loader:
    assert [sample["value"] for sample in loader] == [4 << 20] * 160
print("given")
"""


def test_threads_that_wait_for_memory_let_others_run_functions() -> None:
    ends_well(LARGE, "given\n")


LET_GO = """
import threading, weakref
class Held:
    pass
gone = threading.Event()
def source():
    held = Held()
    weakref.finalize(held, gone.set)
    while True:
        yield {"value": 1 if held else 0}
loader = fb.from_iterable(source, on="threads", version="1").loader(executor="threads:1")
next(iter(loader))
del loader
gc.collect()
assert gone.wait(60)
print("let go")
"""


def test_what_a_dropped_loader_held_is_let_go_without_another_call() -> None:
    ends_well(LET_GO, "let go\n")


LATE = """
waits, wakes = os.pipe()

class Late:
    def __del__(self, write=os.write, wakes=wakes, leave=os.sched_yield):
        # The interpreter has ended for all threads but this one. The thread that reads comes back, and meets that.
        write(wakes, b"x")
        for _ in range(10_000):
            leave()

def source():
    yield 1
    os.read(waits, 1)
    yield 2

sys.late = Late()
loader = fb.from_iterable(source, on="threads").loader(num_workers=1)
print(next(iter(loader))["value"], flush=True)
"""


def test_a_thread_that_comes_back_after_the_end_ends_no_program() -> None:
    for _ in range(3):
        ends_well(LATE, "1\n")


LIVE = """
import torch
from forebay.torch import DataLoader
if __name__ == "__main__":
    epoch = iter(DataLoader(range(10), num_workers=1))
    print(next(epoch).item(), flush=True)
"""


def test_a_program_ends_with_a_live_dataloader() -> None:
    pytest.importorskip("torch")
    ends_well(LIVE, "0\n")
