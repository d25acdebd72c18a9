"""Functions of Python's in graphs: the same samples on every executor, from every place on, and past every killed worker."""

from __future__ import annotations

import functools
import gc
import importlib.util
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import functions_of_tests as f
import numpy as np
import pytest

import forebay as fb

EXECUTORS = ["inline", "threads:1", "threads:3", "processes:2"]

GRAPHS: dict[str, Callable[[], fb.Dataset]] = {
    "map": lambda: fb.range(60).map(f.double),
    "batched": lambda: fb.range(60).map(f.halves, batched=True, batch_size=7),
    "filter": lambda: fb.range(60).filter(f.odd),
    "flat_map": lambda: fb.range(60).flat_map(f.twice),
    "random_map": lambda: fb.range(60).shuffle(9).random_map(f.draw),
    "collate_fn": lambda: fb.range(60).batch(7, collate_fn=f.join),
    "from_list": lambda: fb.from_list([{"value": n} for n in range(60)]).random_sampler(),
    "from_indexed": lambda: fb.from_indexed(f.Together(60)).random_sampler().map(f.double),
    "from_iterable": lambda: fb.from_iterable(lambda: ({"value": n} for n in range(60)), on="threads").map(f.double),
    "sample": lambda: fb.from_indexed(f.Together(60)).sample([5, 3, 5, *range(40)]).select(["value"]),
    "mixed": lambda: fb.mix([fb.range(30).map(f.double), fb.range(30).map(f.double, version="again")]).batch(4),
}


def plain(sample: Any) -> dict[str, Any]:
    return {name: value.tolist() if isinstance(value, fb.Array) else value for name, value in sample.items()}


def read(graph: fb.Dataset, executor: str, **settings: Any) -> list[dict[str, Any]]:
    with graph.loader(executor=executor, seed=5, **settings) as loader:
        return [plain(sample) for sample in loader]


@pytest.mark.parametrize("name", GRAPHS)
def test_every_executor_gives_the_same_and_goes_on_from_every_place(name: str) -> None:
    truth = read(GRAPHS[name](), "inline")
    assert len(truth) >= 9
    for executor in EXECUTORS:
        with GRAPHS[name]().loader(executor=executor, seed=5) as loader:
            assert [plain(sample) for sample in loader] == truth, executor
        for taken in (0, 1, len(truth) // 2, len(truth)):
            with GRAPHS[name]().loader(executor=executor, seed=5) as loader:
                epoch = iter(loader)
                first = [plain(next(epoch)) for _ in range(taken)]
                state = loader.state_dict()
            with GRAPHS[name]().loader(executor="threads:2", seed=5) as loader:
                loader.load_state_dict(state)
                assert first + ([plain(sample) for sample in loader] if taken < len(truth) else []) == truth


def test_what_functions_are_given_and_give() -> None:
    assert [s["value"] for s in read(fb.range(4).map(f.double), "inline")] == [0, 2, 4, 6]
    assert [s["of"] for s in read(fb.range(9).map(f.halves, batched=True, batch_size=4), "inline")] == [4] * 8 + [1]
    assert [s["value"] for s in read(fb.range(3).flat_map(f.twice), "inline")] == [0, 0, 1, -1, 2, -2]
    assert [s["value"] for s in read(fb.range(5).batch(2, collate_fn=f.join), "inline")] == ["0-1", "2-3", "4"]
    assert [s["value"] for s in read(fb.range(5).batch(2, True, collate_fn=f.join), "inline")] == ["0-1", "2-3"]
    assert read(fb.range(2).map(lambda s: (s["value"], "a")), "inline") == [{"0": 0, "1": "a"}, {"0": 1, "1": "a"}]
    assert read(fb.range(1).map(lambda s: 7.5), "inline") == [{"value": 7.5}]
    drawn = [s["drawn"] for s in read(fb.range(50).random_map(f.draw), "inline")]
    assert len(set(drawn)) == 50 and all(0 <= number < 1 for number in drawn)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_values_come_back_as_they_are(executor: str) -> None:
    values: dict[str, Any] = {
        "none": None,
        "truth": True,
        "whole": -3,
        "wide": 2**64 - 1,
        "real": 0.25,
        "text": "süß",
        "bytes": b"\0\xff",
        "list": [1, [2.5, "x"], {"a": None}],
        "struct": {"a": 1, "b": [True]},
        "set": {1, 2},
        "complex": 1 + 2j,
    }
    (sample,) = fb.from_list([values]).loader(executor=executor)
    assert dict(sample) == values
    assert type(sample["truth"]) is bool and type(sample["whole"]) is int


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.int16).reshape(3, 4),
        np.arange(12.0).reshape(3, 4).T,
        np.zeros((0, 3), np.float32),
        np.array(5, np.uint8),
        np.array([[True]]),
        np.arange(6, dtype=np.float16)[::-2],
        np.int32(-7),
    ],
)
def test_arrays_come_back_as_they_are(executor: str, array: Any) -> None:
    (sample,) = fb.from_list([{"array": array}]).loader(executor=executor)
    found = sample["array"].numpy()
    assert found.dtype == array.dtype and found.shape == np.shape(array) and np.array_equal(found, array)


def test_large_arrays_of_workers_are_used_where_they_lie_and_may_be_written() -> None:
    graph = fb.from_list([{"array": np.full(100_000, n)} for n in range(64)])
    with graph.loader(executor="processes:1") as loader:
        kept = [sample["array"] for sample in loader]
    gc.collect()
    for number, array in enumerate(kept):
        seen = array.numpy()
        assert seen.ctypes.data == array.ptr and (seen == number).all()
    # A worker has let go of what it sent before it sends more.
    assert all(array.writable and array.numpy().flags.writeable for array in kept[:32])
    if importlib.util.find_spec("torch") is not None:
        assert all(array.torch().data_ptr() == array.ptr for array in kept[:32])


def test_functions_run_in_processes_unless_they_are_told_otherwise() -> None:
    def places(graph: fb.Dataset, executor: str) -> set[int]:
        return {sample["process"] for sample in graph.loader(executor=executor)}

    own = os.getpid()
    assert places(fb.range(500).map(f.process), "inline") == {own}
    assert own not in places(fb.range(500).map(f.process), "threads:2")
    assert own not in places(fb.range(500).map(f.process), "processes:2")
    assert places(fb.range(500).map(f.process, on="threads"), "threads:2") == {own}


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_function_of_two_nodes_runs_where_each_says(executor: str) -> None:
    graph = fb.range(9).map(f.double, on="threads").map(f.double).map(f.double, on="process")
    assert [sample["value"] for sample in graph.loader(executor=executor)] == [8 * at for at in range(9)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sources_and_samplers_stay_in_the_program_and_need_not_be_sent(executor: str) -> None:
    class Drawing:
        """Holds what no pickle can, and draws what the program says."""

        def __init__(self) -> None:
            self.lock = threading.Lock()
            self.most = 0

        def __iter__(self) -> Iterator[int]:
            return iter(range(self.most))

    drawing = Drawing()
    sampled = fb.from_list(range(9)).sample(drawing).map(f.double)
    iterated = fb.from_iterable(drawing).map(f.double)
    with sampled.loader(executor=executor) as one, iterated.loader(executor=executor) as other:
        for most in (2, 3):
            drawing.most = most
            assert [sample["value"] for sample in one] == [sample["value"] for sample in other] == [2 * at for at in range(most)]


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_was_raised_is_what_arrives(executor: str) -> None:
    with pytest.raises(KeyError) as raised:
        list(fb.range(9).map(f.fail_at_3).loader(executor=executor))
    assert raised.value.args == ("three",)
    notes = getattr(raised.value, "__notes__", [])
    assert any("range#3" in note and "py_map" in note for note in notes), notes
    away = executor != "inline"
    assert ("fail_at_3" in str(raised.value.__cause__)) == away, "the traceback of the worker"
    if not away:
        frames = raised.traceback
        assert any(entry.name == "fail_at_3" for entry in frames)


def test_the_very_exception_arrives() -> None:
    exception = ValueError("mine")

    def fail(sample: Any) -> None:
        raise exception

    for settings in ({"executor": "inline"}, {"executor": "threads:2"}):
        with pytest.raises(ValueError) as raised:
            list(fb.range(3).map(fail, on="threads").loader(**settings))
        assert raised.value is exception


def test_an_exception_that_cannot_be_sent_is_told_as_text() -> None:
    with pytest.raises(RuntimeError, match="refused") as raised:
        list(fb.range(3).map(f.refuse).loader(executor="processes:1"))
    assert "functions_of_tests.py" in str(raised.value.__cause__)


@pytest.mark.parametrize("executor", EXECUTORS)
def test_what_raises_can_be_left_out(executor: str) -> None:
    with fb.range(9).map(f.fail_at_3, on_error="quarantine").loader(executor=executor) as loader:
        assert [sample["value"] for sample in loader] == [0, 1, 2, 4, 5, 6, 7, 8]
        (lost,) = loader.quarantine()
        assert isinstance(lost.error, KeyError) and lost.key == "range#3"


def test_items_that_raise_take_no_others_along() -> None:
    graph = fb.from_indexed(f.Squares(20), on_error="skip").sequential_sampler()
    for executor in EXECUTORS:
        assert len(read(graph, executor)) == 19


def test_a_function_that_gives_nothing_is_told_of() -> None:
    with pytest.raises(TypeError, match="does the function end without return"):
        list(fb.range(3).map(f.nothing).loader(executor="inline"))


def test_what_is_no_number_of_the_source_is_refused() -> None:
    with pytest.raises(fb.InvalidError, match="drew sample number 7, the source has 5"):
        list(fb.from_indexed(f.Together(5)).sample([0, 7]).loader(executor="inline"))


def test_a_killed_worker_costs_no_sample() -> None:
    graph = fb.range(5000).shuffle(100).map(f.double).batch(10)
    truth = read(graph, "inline")
    for executor in ("threads:2", "processes:2"):
        with graph.loader(executor=executor, seed=5) as loader:
            found = []
            for number, batch in enumerate(loader):
                found.append(plain(batch))
                if number in (20, 200):
                    os.kill(loader.worker_processes()[0], signal.SIGKILL)
        assert found == truth


def test_a_source_with_state_goes_on_and_is_not_iterated_again() -> None:
    def graph() -> fb.Dataset:
        return fb.from_iterable(lambda: f.Counter(60_000), on="threads", version="1")

    # Its place is noted now and then; from there on it is iterated again.
    with graph().loader(executor="inline") as loader:
        epoch = iter(loader)
        first = [next(epoch)["value"] for _ in range(50_000)]
        state = loader.state_dict()
    with graph().loader(executor="inline") as loader:
        loader.load_state_dict(state)
        rest = [dict(sample) for sample in loader]
    assert first + [sample["value"] for sample in rest] == list(range(60_000))
    assert rest[0]["made"] < 50_000, "it was iterated from its start"


def test_of_two_states_the_iterators_counts() -> None:
    graph = fb.from_iterable(f.Both(60_000), on="threads", version="1")
    with graph.loader(executor="inline") as loader:
        epoch = iter(loader)
        first = [next(epoch)["value"] for _ in range(50_000)]
        state = loader.state_dict()
    with graph.loader(executor="inline") as loader:
        loader.load_state_dict(state)
        assert first + [sample["value"] for sample in loader] == list(range(60_000))


def test_a_graph_with_another_function_is_refused() -> None:
    with fb.range(9).map(f.double).loader(executor="inline") as loader:
        next(iter(loader))
        state = loader.state_dict()
    for other in (fb.range(9).map(f.fail_at_3), fb.range(9).map(f.double, version="2")):
        with other.loader(executor="inline") as loader:
            loader.load_state_dict(state)
            with pytest.raises(fb.InvalidError, match="function"):
                iter(loader)


def test_functions_of_one_name_are_told_apart() -> None:
    def times(factor: int) -> Callable[[Any], Any]:
        return lambda sample: {"value": sample["value"] * factor}

    graph = fb.range(4).map(times(2)).map(times(5))
    assert [sample["value"] for sample in graph.loader(executor="inline")] == [0, 10, 20, 30]
    both = fb.concat([fb.range(2).map(times(3)), fb.range(2).map(times(7))])
    assert sorted(sample["value"] for sample in both.loader(executor="inline")) == [0, 0, 3, 7]


def test_partials_and_objects_are_functions_too() -> None:
    class Add:
        def __init__(self, more: int) -> None:
            self.more = more

        def __call__(self, sample: Any) -> Any:
            return {"value": sample["value"] + self.more}

    def scale(factor: int, sample: Any) -> Any:
        return {"value": sample["value"] * factor}

    graph = fb.range(3).map(Add(10)).map(functools.partial(scale, 2))
    assert [sample["value"] for sample in graph.loader(executor="inline")] == [20, 22, 24]


def test_a_dataset_with_functions_is_pickled() -> None:
    graph = fb.range(5).map(f.double)
    again = pickle.loads(pickle.dumps(graph))
    assert again == graph and [s["value"] for s in again.loader(executor="inline")] == [0, 2, 4, 6, 8]


def test_what_cannot_be_sent_is_told() -> None:
    lock = __import__("threading").Lock()
    graph = fb.range(3).map(lambda sample: lock and sample)
    with pytest.raises(fb.InvalidError, match="cannot be sent to worker processes"):
        graph.loader(executor="processes:1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", fb.LintWarning)
        with graph.loader(executor="threads:2") as loader:  # Where nobody asked for processes it runs here.
            assert len(list(loader)) == 3


def test_a_saved_graph_without_its_functions_is_refused() -> None:
    saved = fb.Dataset.from_json(fb.range(3).map(f.double).to_json())
    with pytest.raises(fb.InvalidError, match="build the dataset in Python"):
        list(saved.loader(executor="inline"))


def test_what_can_be_iterated_once_is_no_source() -> None:
    with pytest.raises(TypeError, match="iterated once"):
        fb.from_iterable(iter([1]))
    with pytest.raises(TypeError, match="__len__"):
        fb.from_indexed(iter([1]))
    with pytest.raises(TypeError, match="iterated once"):
        fb.range(3).sample(iter([1]))
    with pytest.raises(TypeError, match="cannot be iterated"):
        fb.from_iterable(5)  # type: ignore[arg-type]


def test_nothing_is_iterated_before_it_is_read() -> None:
    class Opens:
        count = 0

        def __iter__(self) -> Iterator[int]:
            self.count += 1
            return iter([2, 0])

    opens = Opens()
    graphs = [fb.from_iterable(opens), fb.range(3).sample(opens)]
    assert opens.count == 0
    for graph in graphs:
        assert [sample["value"] for sample in graph.loader(executor="inline")] == [2, 0]
    assert opens.count == 2


def test_functions_are_let_go_with_their_loader() -> None:
    class Held:
        def __call__(self, sample: Any) -> Any:
            return sample

    function = Held()
    watched = weakref.ref(function)
    open_before = len(os.listdir("/proc/self/fd"))
    for executor in ("inline", "threads:2"):
        loader = fb.range(3).map(function, on="threads").loader(executor=executor)
        assert len(list(loader)) == 3
        loader.close()
    del loader, function
    gc.collect()
    assert watched() is None
    assert len(os.listdir("/proc/self/fd")) <= open_before


def test_an_interrupt_in_a_function_ends_the_epoch() -> None:
    def interrupted(sample: Any) -> Any:
        if sample["value"] == 2:
            raise KeyboardInterrupt
        return sample

    with pytest.raises(KeyboardInterrupt):
        list(fb.range(5).map(interrupted, on_error="skip").loader(executor="inline"))


DROPPED = """
import gc, sys, threading
sys.path[:0] = {path!r}
import functions_of_tests as f
import forebay as fb
kept = None
for number in range(60):
    epoch = iter(fb.range(100_000).map(f.double, on="threads").batch(3).loader(executor="threads:2"))
    next(epoch)
    kept = epoch if number % 2 else kept
    del epoch
    if number % 10 == 0:
        gc.collect()
for number in range(3):
    next(iter(fb.range(100_000).map(f.double).batch(3).loader(executor="processes:2")))
shared = iter(fb.range(5000).map(f.double, on="threads").loader(executor="threads:2"))
found = []
takers = [threading.Thread(target=lambda: found.extend(sample["value"] for sample in shared)) for _ in range(3)]
[taker.start() for taker in takers]
[taker.join() for taker in takers]
assert sorted(found) == [2 * value for value in range(5000)]
live = iter(fb.range(10**9).map(f.double, on="threads").loader(executor="threads:2"))
next(live)
print("at the end")
"""


def test_loaders_are_dropped_shared_and_left_behind_at_the_end() -> None:
    code = DROPPED.format(path=[str(Path(f.__file__).parent)])
    command = [sys.executable, "-W", "error", "-X", "faulthandler", "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "at the end\n", "")


def test_without_cloudpickle_scripts_send_their_functions(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import sys\n"
        "sys.modules['cloudpickle'] = None\n"
        "import forebay as fb\n"
        "def own(sample):\n"
        "    return {'value': sample['value'] + 1}\n"
        "if __name__ == '__main__':\n"
        "    print([s['value'] for s in fb.range(3).map(own).loader(executor='processes:2')])\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "[1, 2, 3]\n", done.stderr


def test_classes_of_a_script_go_to_workers_and_back(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys\n"
        "if 'without' in os.environ:\n"
        "    sys.modules['cloudpickle'] = None\n"
        "from dataclasses import dataclass\n"
        "import forebay as fb\n"
        "@dataclass\n"
        "class P:\n"
        "    x: int\n"
        "def read(sample):\n"
        "    return {'x': sample['value'].x}\n"
        "def make(sample):\n"
        "    return {'value': P(sample['value'])}\n"
        "if __name__ == '__main__':\n"
        "    for data in (fb.from_list([P(1)]), fb.from_iterable(lambda: iter([P(1)]), on='threads')):\n"
        "        print([s['x'] for s in data.map(read).loader(executor='processes:1')])\n"
        "    print([s['value'] for s in fb.range(2).map(make).loader(executor='processes:1')])\n"
        "    print([s['x'] for s in fb.range(2).map(make).map(read).loader(executor='processes:1')])\n"
    )
    for more in ({}, {"without": "1"}):
        environment = {**os.environ, **more}
        done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "[1]\n[1]\n[P(x=0), P(x=1)]\n[0, 1]\n", (more, done.stderr)


def test_a_list_that_holds_itself_is_an_error() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(RecursionError):
        list(fb.from_iterable(lambda: iter([{"a": endless}])).loader(executor="inline"))
