"""What functions find in worker processes: the standard streams, the script's arguments, and loaders of their own."""

from __future__ import annotations

import gc
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import functions_of_tests as f
import pytest

import forebay as fb

STREAMS = """
import os, subprocess, sys
import forebay as fb
def look(sample):
    print("printed", sample["value"])
    os.write(1, b"raw\\n")
    echoed = subprocess.run(["cat"], stdout=subprocess.PIPE).stdout
    try:
        line = input()
    except EOFError:
        line = None
    return {"read": sys.stdin.read(), "line": line, "raw": os.read(0, 9), "echoed": echoed, "argv": sys.argv[1:]}
def stdin(sample):
    return {"stdin": os.readlink("/proc/self/fd/0"), "writes": writes()}
def writes():
    try:
        return os.write(0, b"to the loader")
    except OSError as error:
        return error.strerror
if __name__ == "__main__":
    for executor in ("processes:2", "threads:1"):
        for found in fb.range(20).map(look).loader(executor=executor):
            assert dict(found) == {"read": "", "line": None, "raw": b"", "echoed": b"", "argv": ["one", "two"]}, found
    for found in fb.range(2).map(stdin).loader(executor="processes:1"):
        assert dict(found) == {"stdin": "/dev/null", "writes": "Bad file descriptor"}, found
    print(sys.stdin.read(), "left")
"""


def script(folder: Path, text: str, *args: str, given: str = "") -> subprocess.CompletedProcess[str]:
    """Runs a script as a user does, whose prints are buffered."""
    path = folder / "script.py"
    path.write_text(text)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-W", "error", str(path), *args]
    return subprocess.run(command, env=environment, input=given, capture_output=True, text=True, timeout=60, check=False)


def test_functions_print_and_read_as_if_nobody_was_there(tmp_path: Path) -> None:
    done = script(tmp_path, STREAMS, "one", "two", given="for the program")
    assert (done.returncode, done.stdout) == (0, "for the program left\n"), done.stderr
    lines = done.stderr.splitlines()
    assert sorted(lines) == sorted(2 * ["raw"] * 20 + 2 * [f"printed {at}" for at in range(20)])


ENDS = """
import ctypes, os, threading
import forebay as fb
def work(sample):
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
    destructor = kind(lambda _: os.write(2, b"destroyed under a thread at work\\n"))
    ctypes.CDLL(None).__cxa_atexit(destructor, None, None)  # As C++ does for each object that lives as long as the program.
    os.write(2, b"at work\\n")
    threading.Event().wait()
if __name__ == "__main__":
    next(iter(fb.range(1).map(work).loader(executor="processes:1")))
"""


def test_a_worker_whose_loader_is_gone_destroys_nothing_that_threads_use(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text(ENDS)
    with subprocess.Popen([sys.executable, "-W", "error", str(path)], stderr=subprocess.PIPE, text=True) as program:
        assert program.stderr is not None
        assert program.stderr.readline() == "at work\n"
        program.kill()
        # It has no end before the worker, which has it open too, has one.
        assert program.stderr.read() == ""


UNGUARDED = """
import sys
if "without" in sys.argv:
    sys.modules["cloudpickle"] = None
import forebay as fb
def own(sample):
    return {"value": sample["value"] + 1}
print(list(fb.range(3).map(own).loader(num_workers=2)))
"""


@pytest.mark.parametrize("cloudpickle", ["with", "without"])
def test_a_script_without_a_guard_is_told_what_to_do(tmp_path: Path, cloudpickle: str) -> None:
    if cloudpickle == "with" and importlib.util.find_spec("cloudpickle") is None:
        pytest.skip("cloudpickle is not installed")
    done = script(tmp_path, UNGUARDED, cloudpickle)
    assert done.returncode == 1 and "put that code below if __name__ == '__main__':" in done.stderr, done.stderr
    guarded = UNGUARDED.replace("print(", "if __name__ == '__main__':\n    print(")
    done = script(tmp_path, guarded, cloudpickle)
    assert done.stdout == "[{'value': 1}, {'value': 2}, {'value': 3}]\n", done.stderr


def test_a_script_that_ends_as_a_worker_runs_it_is_told_what_to_do(tmp_path: Path) -> None:
    done = script(tmp_path, UNGUARDED.replace("print(", "if __name__ == '__mp_main__':\n    sys.exit(4)\nprint("))
    assert done.returncode == 1 and "the script ended with 4 when a worker process ran it again" in done.stderr


def test_torchs_loaders_of_a_script_without_a_guard_are_told_of_too(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = "from forebay.torch import DataLoader\nprint(list(DataLoader([1, 2, 3], num_workers=1)))\n"
    done = script(tmp_path, code)
    assert done.returncode == 1 and "put that code below if __name__ == '__main__':" in done.stderr, done.stderr


@pytest.mark.parametrize("executor", ["inline", "threads:2", "processes:2"])
def test_a_function_reads_with_a_loader_of_its_own(executor: str) -> None:
    found = fb.range(6).map(f.nested).loader(executor=executor)
    assert [sample["value"] for sample in found] == [[2 * at for at in range(end)] for end in range(6)]


OWN_ERROR = """
import sys
if "without" in sys.argv:
    sys.modules["cloudpickle"] = None
import forebay as fb
class Own(Exception):
    pass
def fail(sample):
    raise Own("mine")
if __name__ == "__main__":
    for executor in ("inline", "threads:1", "processes:1"):
        try:
            list(fb.range(3).map(fail).loader(executor=executor))
        except Own as error:
            print(error)
"""


@pytest.mark.parametrize("cloudpickle", ["with", "without"])
def test_an_exception_of_the_scripts_own_is_caught_by_its_class(tmp_path: Path, cloudpickle: str) -> None:
    done = script(tmp_path, OWN_ERROR, cloudpickle)
    assert (done.returncode, done.stdout) == (0, "mine\n" * 3), done.stderr


def is_shared(place: int) -> bool:
    """Whether an address is of memory that is shared with workers."""
    with open("/proc/self/maps") as maps:
        for line in maps:
            begin, end = (int(part, 16) for part in line.split()[0].split("-"))
            if begin <= place < end:
                return "memfd" in line
    return False


def test_arrays_in_the_objects_of_workers_are_used_where_they_lie() -> None:
    numpy = pytest.importorskip("numpy")
    with fb.range(20).map(f.boxed).loader(executor="processes:1") as loader:
        for at, sample in enumerate(loader):
            box = sample["box"]
            # Complex numbers have no form of Forebay's: they are a buffer of the pickle.
            assert [is_shared(array.ctypes.data) for array in (box.floats, box.waves, box.small)] == [True, True, False]
            assert numpy.array_equal(box.floats, numpy.full(2000, float(at))) and numpy.array_equal(box.waves, numpy.full(1000, 1j * at))
            assert box.small.tolist() == [at] * 3 and box.again[0] is box.waves


def test_tensors_in_the_objects_of_workers_are_used_where_they_lie() -> None:
    pytest.importorskip("torch")
    with fb.Loader(fb.range(50).map(f.boxed_tensor), executor="processes:1", _chunk=1) as loader:
        boxes = [sample["box"] for sample in loader]
    assert [box.tensor.tolist() for box in boxes] == [[at] * 2000 for at in range(50)]
    # Torch would write to what a worker has not let go of yet, so that is copied.
    assert any(is_shared(box.tensor.data_ptr()) for box in boxes)


def test_an_object_of_a_thread_has_arrays_that_can_be_written() -> None:
    pytest.importorskip("numpy")
    with fb.range(2).map(f.boxed, on="threads").loader(num_workers=1) as loader:
        for sample in loader:
            box = sample["box"]
            box.floats += 1
            box.waves += 1
            assert box.floats[0] == 1 + sample["box"].waves[0].imag


def test_what_was_taken_leaves_nothing_to_the_garbage_collector() -> None:
    pytest.importorskip("numpy")
    ranges = fb.range(100), fb.range(200)
    graphs = [ranges[0], ranges[0].map(f.boxed), ranges[0].map(f.boxed).map(f.same), ranges[1].batch(2)]
    for graph in graphs:
        for executor in ("inline", "threads:1", "processes:1"):
            with graph.loader(executor=executor) as loader:
                samples = iter(loader)
                next(samples)
                found = []
                # What a library does at its first use may leave something once; what a sample leaves is there each time.
                for _ in range(3):
                    gc.collect()
                    gc.disable()
                    for _ in range(30):
                        next(samples)
                    found.append(gc.collect())
                    gc.enable()
                # Memory that waits for the collector is missed by the workers, and taken anew.
                assert 0 in found, (str(graph), executor, found)
