"""What the tests of other loaders check, as it shows from Python: with sources, samplers and functions of Python's.

The ids are those of the list of cases; what concerns a pipe alone is tested beside it, in Rust.
"""

from __future__ import annotations

import functools
import gc
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import functions_of_tests as f
import numpy as np
import pytest

import forebay as fb
from forebay._native import parse_bytes

EXECUTORS = ["inline", "threads:2", "processes:2"]


def plain(sample: Any) -> Any:
    value = sample["value"]
    return value.tolist() if isinstance(value, fb.Array) else value


def values(graph: fb.Dataset, executor: str = "inline", **settings: Any) -> list[Any]:
    with graph.loader(executor=executor, **settings) as loader:
        return [plain(sample) for sample in loader]


def numbers(count: int) -> dict[str, fb.Dataset]:
    """The numbers below ``count``, of every kind of source that Python has."""
    return {
        "list": fb.from_list(range(count)),
        "sequence": fb.from_indexed(range(count)),
        "mapping": fb.from_indexed({f"key {at}": at for at in range(count)}),
        "iterable": fb.from_iterable(range(count), on="threads"),
        "generator": fb.from_iterable(lambda: ({"value": at} for at in range(count)), on="threads"),
        "stateful": fb.from_iterable(f.Stepper(count), on="threads"),
    }


def lists(*items: list[int]) -> fb.Dataset:
    return fb.from_list([{"value": item} for item in items]).unbatch()


def cut(numbers: range, size: int) -> list[list[int]]:
    return [list(numbers[at : at + size]) for at in range(0, len(numbers), size)]


RAGGED: tuple[list[int], ...] = ([0, 1, 2, 3], [], [4, 5], [6, 7, 8, 9], [], [], [10, 11, 12])
FIVES = [{"value": [number] * number} for number in range(1, 6)]
OTHERS = [{"value": [1, 1, 1]}, {"value": [2]}, {"value": [3, 3, 3, 3]}, {"value": [4, 4]}]

EXACT: dict[str, tuple[Callable[[], fb.Dataset], list[Any]]] = {
    "B010": (lambda: fb.from_list(range(20)).batch(6, True), cut(range(18), 6)),
    "B010, collate_fn": (lambda: fb.from_list(range(20)).batch(6, True, collate_fn=f.join), ["0-1-2-3-4-5", "6-7-8-9-10-11", "12-13-14-15-16-17"]),
    "B011": (lambda: fb.from_list(range(20)).batch(6), cut(range(20), 6)),
    "B011, collate_fn": (lambda: fb.from_list(range(14)).batch(6, collate_fn=f.join), ["0-1-2-3-4-5", "6-7-8-9-10-11", "12-13"]),
    "B013": (lambda: fb.from_list(range(20)).batch(6).unbatch(), list(range(20))),
    "B013, collate_fn": (lambda: fb.from_list(range(20)).batch(6, collate_fn=f.listed).unbatch(), list(range(20))),
    "B016": (lambda: fb.from_list(range(10)).batch(3).repeat(4), cut(range(10), 3) * 4),
    "B018": (lambda: fb.from_list(range(10)).repeat(2).batch(3), [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 0, 1], [2, 3, 4], [5, 6, 7], [8, 9]]),
    "B019": (lambda: fb.from_list(range(10)).repeat(2).batch(3, True), [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 0, 1], [2, 3, 4], [5, 6, 7]]),
    "B022": (lambda: fb.from_list(range(47)).map(f.same).batch(3), cut(range(47), 3)),
    "B023": (lambda: fb.from_list(range(10)).batch(2).rebatch(4), cut(range(10), 4)),
    "B024": (lambda: fb.from_list(range(10)).batch(4).rebatch(2), cut(range(10), 2)),
    "B026": (lambda: fb.from_list(range(10)).batch(2).rebatch(4, drop_last=True), cut(range(8), 4)),
    "B029": (lambda: fb.from_list(range(10)).filter(f.large), []),
    "B030": (lambda: fb.from_list(range(20)).batch(4).filter(f.tens), [[16, 17, 18, 19]]),
    "B036": (lambda: fb.from_list(range(10)).batch(3).take(2), cut(range(6), 3)),
    "B036, more than there are": (lambda: fb.from_list(range(10)).batch(3).take(5), cut(range(10), 3)),
    "B038": (lambda: fb.from_list(range(8)).map(f.one_more).filter(f.even).batch(2), [[2, 4], [6, 8]]),
    "B040": (lambda: fb.from_list(range(5)).map(f.refuse_even, on_error="skip"), [1, 3]),
    "B041": (lambda: fb.from_list([{"value": item} for item in RAGGED]).flat_map(f.each), list(range(13))),
    "B060": (lambda: fb.from_list(range(3)).repeat(2), [0, 1, 2, 0, 1, 2]),
    "B080": (lambda: fb.from_list(range(20)).slice(2, 18, 2).slice(1, 6, 2), [4, 8, 12]),
    "B085": (lambda: fb.mux([lists([0]), lists([0, 1]), lists([0, 1, 2])]), [0, 0, 0]),
    "B084": (lambda: fb.mux([lists([0]), lists([0, 1]), lists([0, 1, 2])], stop="longest"), [0, 0, 0, 1, 1, 2]),
    "B093": (lambda: fb.mix([lists([0, 2, 4, 6, 8]), lists([1, 3, 5])], [0.75, 0.25], "first_exhausted", draw="proportional"), [0, 2, 4, 1, 6, 8]),
    "B099": (lambda: fb.mux([lists([2, 2]), lists([1]), lists([3, 3, 3])], stop="longest"), [2, 1, 3, 2, 3, 3]),
    "B101": (lambda: fb.from_list(FIVES).unbatch(interleave=3), [1, 2, 3, 2, 3, 4, 3, 4, 5, 4, 5, 4, 5, 5, 5]),
    "B102": (lambda: fb.from_list(OTHERS).unbatch(interleave=3), [1, 2, 3, 1, 3, 1, 4, 3, 4, 3]),
    "B103": (lambda: fb.from_list(OTHERS).unbatch(interleave=10), [1, 2, 3, 4, 1, 3, 4, 1, 3, 3]),
}  # fmt: skip


@pytest.mark.parametrize("case", EXACT)
def test_the_sequence_is_that_of_the_definition(case: str) -> None:
    graph, expected = EXACT[case][0](), EXACT[case][1]
    for executor in EXECUTORS if graph._functions else EXECUTORS[:2]:
        with graph.loader(executor=executor) as loader:
            for _ in range(2):
                epoch = iter(loader)
                assert [plain(sample) for sample in epoch] == expected, executor
                assert next(epoch, None) is None, "the end stays the end"
        with graph.loader(executor="inline") as other:  # B041: from after each sample on; it is the same rest everywhere.
            if case.startswith("B041"):
                _every_state_goes_on(graph, other, expected)


def _every_state_goes_on(graph: fb.Dataset, loader: fb.Loader, expected: list[Any]) -> None:
    epoch = iter(loader)
    for taken in range(len(expected)):
        with graph.loader(executor="inline") as other:
            other.load_state_dict(loader.state_dict())
            assert [plain(sample) for sample in other] == expected[taken:]
        next(epoch)


@pytest.mark.parametrize("kind", numbers(0))
def test_a_source_is_read_in_order_again_and_again_b001(kind: str) -> None:
    for executor in EXECUTORS[:2]:
        with numbers(20)[kind].loader(executor=executor) as loader:
            assert [[plain(sample) for sample in loader] for _ in range(3)] == [list(range(20))] * 3


@pytest.mark.parametrize("kind", ["list", "sequence", "mapping"])
def test_a_random_sampler_permutes_anew_in_each_epoch_b004_b072(kind: str) -> None:
    with numbers(400)[kind].random_sampler().loader(executor="threads:2", seed=42) as loader:
        first, second = ([plain(sample) for sample in loader] for _ in range(2))
    assert sorted(first) == sorted(second) == list(range(400))
    assert len({tuple(first), tuple(second), tuple(range(400))}) == 3


def test_batched_reads_equal_single_reads_b072() -> None:
    both = [fb.from_indexed(kind(60), version="1").random_sampler().loader(executor="inline", seed=42) for kind in (f.Rows, f.RowsTogether)]
    assert [plain(sample) for sample in both[0]] == [plain(sample) for sample in both[1]]


@pytest.mark.parametrize(("of", "length"), [(range(10), 10), (range(2, 10), 8), (range(2, 10, 3), 3)])
def test_ranges_are_pythons_b005(of: range, length: int) -> None:
    for graph in (fb.range(of.stop, of.start, of.step), fb.from_indexed(of), fb.from_list(of)):
        assert values(graph) == list(of)
        assert len(graph.loader(executor="inline")) == length


@pytest.mark.parametrize("kind", numbers(0))
def test_empty_sources_end_cleanly_b006_b065(kind: str) -> None:
    chains: list[Callable[[fb.Dataset], fb.Dataset]] = [
        lambda empty: empty.map(f.double).filter(f.odd).flat_map(f.twice).batch(3),
        lambda empty: empty.map(f.halves, batched=True, batch_size=4).shuffle(5),
        lambda empty: empty.batch(2, collate_fn=f.join).repeat(2),
        lambda empty: empty.map(f.double).repeat(),
        lambda empty: fb.mux([empty, empty.random_map(f.draw)], stop="longest"),
    ]
    for chain in chains:
        for executor in EXECUTORS[:2]:
            assert values(chain(numbers(0)[kind]), executor) == []


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: fb.from_list([1]).batch(0).loader(), "B012: size"),
        (lambda: fb.from_list([1]).batch(0, collate_fn=f.join).loader(), "B012: size"),
        (lambda: fb.from_list([1]).map(f.halves, batched=True, batch_size=0).loader(), "B012: size"),
        (lambda: fb.from_list([1]).loader(ahead=-1), "B057: ahead is -1"),
        (lambda: fb.from_list([1]).prefetch(-1).loader(), "B057: ahead` is -1"),
        (lambda: fb.from_list([1]).loader(budget=-1), "B057: budget is -1"),
        (lambda: fb.from_list([1]).loader(epochs=-1), "epochs is -1"),
        (lambda: fb.from_list([1]).loader(seed=2**64), "seed is 18446744073709551616"),
        (lambda: fb.from_list([1]).loader(limit=-5), "limit is -5"),
        (lambda: fb.from_list([1]).loader().set_epoch(-1), "epoch is -1"),
        (lambda: fb.from_list([1]).loader(ranks=(3, 3)), "a rank from 0 to one below the world size"),
        (lambda: fb.from_list([1]).loader(ranks=(-1, 3)), "a rank from 0 to one below the world size"),
        (lambda: fb.from_list([1]).repeat(0).loader(), "B063: count` is 0"),
        (lambda: fb.from_list([1]).repeat(-1).loader(), "B063: count` is -1"),
        (lambda: fb.from_list([1]).shuffle(0).loader(), "B071: size` is 0"),
        (lambda: fb.from_list([1]).shuffle(-3).loader(), "B071: size` is -3"),
    ],
)
def test_what_makes_no_sense_is_refused_at_construction(make: Callable[[], Any], said: str) -> None:
    with pytest.raises(fb.InvalidError, match=said.rpartition(": ")[2]):
        make()


def test_batches_of_arrays_and_records_b014_b015() -> None:
    records = fb.from_list([{"step": at, "value": np.array([float(at)])} for at in range(10)]).batch(4, True)
    with records.loader(executor="inline", output="numpy") as loader:
        found = [(batch["step"].tolist(), batch["value"].shape) for batch in loader]
    assert found == [([0, 1, 2, 3], (4, 1)), ([4, 5, 6, 7], (4, 1))]
    vectors = fb.from_list([{"value": np.zeros(2)} for _ in range(8)]).batch(4)
    assert [batch["value"].shape for batch in vectors.loader(executor="inline")] == [(4, 2), (4, 2)]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ([{"value": np.zeros(2)}, {"value": np.zeros(3)}], r"float64 \[3\] after float64 \[2\]"),
        ([{"value": np.zeros(2)}, {"value": np.zeros(2, np.int8)}], r"int8 \[2\] after float64 \[2\]"),
        ([{"value": 1}, {"other": 1}], "lacks `value`"),
        ([{"value": 1}, {"value": 1, "other": 1}], "other"),
    ],
)
def test_what_does_not_stack_is_told_and_gives_no_part_of_a_batch_b020(items: list[Any], said: str) -> None:
    epoch = iter(fb.from_list(items).batch(2).loader(executor="threads:2"))
    with pytest.raises(fb.InvalidError, match=said):
        next(epoch)


def test_a_filter_goes_on_in_the_midst_and_counts_b029_b031() -> None:
    graph = fb.from_list(range(10)).filter(f.even)
    with graph.loader(executor="inline") as loader:
        epoch = iter(loader)
        assert [plain(next(epoch)) for _ in range(2)] == [0, 2]
        state = loader.state_dict()
    with graph.loader(executor="threads:2") as loader:
        loader.load_state_dict(state)
        assert [plain(sample) for sample in loader] == [4, 6, 8]
    for condition, passed in ((f.even, 5), (f.large, 0)):
        with fb.from_list(range(10)).filter(condition).loader(executor="inline") as loader:
            assert len(list(loader)) == passed
            counts = {node["node"]: node["samples"] for node in loader.stats()["nodes"]}
        assert counts == {"py_indexed": 10, "py_filter": passed}


def test_a_filter_that_drops_too_many_warns_where_python_logs_b033(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "forebay"):
        assert values(fb.from_list(range(1000)).filter("value > 5000", warn_threshold_ratio=0.9)) == []
    assert [record.levelname for record in caplog.records] == ["WARNING"] and "100 %" in caplog.text
    with pytest.raises(fb.InvalidError, match="100 %") as caught:
        values(fb.from_list(range(1000)).filter("value > 5000", raise_threshold_ratio=0.9))
    assert caught.value.node == "filter"


@pytest.mark.parametrize("place", ["threads", "process"])
def test_without_an_order_the_same_set_comes_b044(place: str) -> None:
    graph = fb.from_list(range(500)).map(f.same, on=place, unordered=True)
    assert sorted(values(graph, "threads:3")) == list(range(500))


def test_a_worker_that_ends_with_a_code_is_told_with_it_b047() -> None:
    with fb.from_list(range(40)).map(f.leave_at_17).batch(5).loader(executor="processes:2") as loader:
        found: list[Any] = []
        with pytest.raises(fb.WorkerDied, match="ended with status 123") as caught:
            found.extend(plain(batch) for batch in loader)
    assert found == cut(range(15), 5)
    assert caught.value.node == "py_map" and "#17" in (caught.value.key or "")


def test_a_worker_that_is_asked_to_exit_raises_that_b047() -> None:
    for executor in EXECUTORS:
        with pytest.raises(SystemExit) as caught:
            values(fb.from_list(range(40)).map(f.exit_at_17), executor)
        assert caught.value.code == 7, executor


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("place", ["threads", "process"])
def test_a_source_that_cannot_start_fails_the_first_read_b048(executor: str, place: str) -> None:
    with fb.from_iterable(f.never_starts, on=place).prefetch(4).batch(2).loader(executor=executor) as loader:
        state = loader.state_dict()
        epoch = iter(loader)
        with pytest.raises(ConnectionError, match="no such stream"):
            next(epoch)
        loader.load_state_dict(state)
        with pytest.raises(ConnectionError, match="no such stream"):
            next(iter(loader))


@pytest.mark.parametrize("executor", EXECUTORS[:2])
def test_a_source_is_closed_once_b049(executor: str) -> None:
    closed: list[str] = []

    def source() -> Iterator[int]:
        try:
            yield from range(10**9)
        finally:
            closed.append("closed")

    graph = fb.from_iterable(source, on="threads").prefetch(3).map(f.same, on="threads")
    with graph.loader(executor=executor) as loader:
        next(iter(loader))
        loader.close()
        assert closed == ["closed"]
    assert values(graph.take(3), executor) == [0, 1, 2] and closed == ["closed"] * 2
    epoch = iter(graph.loader(executor=executor))
    next(epoch)
    del epoch
    gc.collect()
    for _ in range(1_000_000):  # Another thread waits for its end, and what it let go of goes with the next call.
        if len(closed) == 3 or parse_bytes("1KB") != 1000:
            break
    assert closed == ["closed"] * 3


@pytest.mark.parametrize("ahead", [0, 1, 10])
def test_however_little_is_read_ahead_all_comes_in_order_b052(ahead: int) -> None:
    for graph in numbers(20).values():
        assert values(graph.map(f.same, on="threads"), "threads:2", ahead=ahead) == list(range(20))
        assert values(graph.prefetch(max(ahead, 1)).map(f.same, on="threads"), "threads:2") == list(range(20))


@pytest.mark.parametrize("executor", EXECUTORS[:2])
def test_a_state_before_the_first_read_starts_nothing_b056(executor: str) -> None:
    begun: list[int] = []

    def source() -> Iterator[int]:
        begun.append(1)
        yield from range(20)

    with fb.from_iterable(source, on="threads").prefetch(8).loader(executor=executor) as loader:
        state = loader.state_dict()
        assert begun == []
        loader.load_state_dict(state)
        assert [plain(sample) for sample in loader] == list(range(20)) and begun == [1]


@pytest.mark.parametrize("kind", numbers(0))
def test_a_cycle_goes_on_in_its_pass_b061_b062(kind: str) -> None:
    graph = numbers(3)[kind]
    with graph.repeat(3).loader(executor="inline") as loader:
        epoch = iter(loader)
        assert [plain(next(epoch)) for _ in range(4)] == [0, 1, 2, 0]
        state = loader.state_dict()
    with graph.repeat(3).loader(executor="threads:2") as loader:
        loader.load_state_dict(state)
        assert [plain(sample) for sample in loader] == [1, 2, 0, 1, 2]
    with graph.repeat(5).loader(executor="inline") as loader, pytest.raises(fb.InvalidError, match="repeat count=3"):
        loader.load_state_dict(state)
        iter(loader)


def test_lengths_are_told_b016_b063() -> None:
    def length(graph: fb.Dataset) -> int:
        return len(graph.loader(executor="inline"))

    assert length(fb.from_list(range(6)).repeat(3)) == 18
    assert length(fb.from_indexed(range(10)).batch(3)) == 4
    assert length(fb.from_indexed({"a": 1}).map(f.double)) == 1
    for graph in (fb.from_list([1]).repeat(), fb.from_iterable([1]), fb.from_list([1]).filter(f.odd)):
        with pytest.raises(TypeError, match="the number of samples"):
            length(graph)


def test_a_seed_decides_b068_b077() -> None:
    def epochs(seed: int) -> list[list[int]]:
        with fb.from_list(range(1000)).shuffle(10).loader(executor="threads:2", seed=seed) as loader:
            return [[plain(sample) for sample in loader] for _ in range(2)]

    one, again, other = epochs(1), epochs(1), epochs(2)
    assert one == again and len({tuple(epoch) for epoch in one + other}) == 4


@pytest.mark.parametrize("kind", numbers(0))
@pytest.mark.parametrize("taken", [0, 3, 7])
def test_a_buffer_that_is_saved_gives_the_uninterrupted_sequence_b069_b071(kind: str, taken: int) -> None:
    graph = numbers(20)[kind].shuffle(5)
    truth = values(graph, seed=9)
    with graph.loader(executor="inline", seed=9) as loader:
        epoch = iter(loader)
        first = [plain(next(epoch)) for _ in range(taken)]
        state = loader.state_dict()
    with graph.loader(executor="threads:2", seed=9) as loader:
        loader.load_state_dict(state)
        assert first + [plain(sample) for sample in loader] == truth
    with numbers(20)[kind].shuffle(10).loader(executor="inline", seed=9) as loader:
        loader.load_state_dict(state)
        with pytest.raises(fb.InvalidError, match="shuffle size=5"):
            iter(loader)


def test_slices_are_pythons_b079() -> None:
    of = range(20)
    for start in range(-8, 8, 3):
        for stop in range(-9, 8, 2):
            for step in (1, 2):
                graph = fb.from_list(of).slice(start, stop, step)
                assert values(graph) == list(of[start:stop:step]), (start, stop, step)
            for step in (-2, -1, 1, 2):  # By random access, backwards too.
                drawn = fb.from_list(of).subset_sampler(start=start, stop=stop, step=step)
                assert values(drawn) == list(of[start:stop:step]), (start, stop, step)


@pytest.mark.parametrize(("counts", "said"), [((3, 2), "input 1 is shorter"), ((2, 2, 2, 3), "input 3 is longer")])
def test_a_strict_zip_names_the_input_b083(counts: tuple[int, ...], said: str) -> None:
    inputs = [fb.from_list([{f"field {at}": 0}] * count, version=str(at)) for at, count in enumerate(counts)]
    with pytest.raises(fb.InvalidError, match=said):
        list(fb.zip(inputs, mode="strict").loader(executor="inline"))


@pytest.mark.parametrize("seed", range(3))
def test_the_four_ends_of_a_mix_b089(seed: int) -> None:
    inputs = [fb.from_list([at] * 10, version=str(at)) for at in range(4)]
    mixed = functools.partial(fb.mix, inputs, [0.1, 0.2, 0.3, 0.4])

    def counts(stop: Any, graph: Callable[[fb.Dataset], fb.Dataset] = lambda graph: graph) -> list[int]:
        found = values(graph(mixed(stop=stop)), seed=seed)
        return [found.count(at) for at in range(4)]

    assert max(counts("first_exhausted")) == 10
    assert counts("all_exhausted") == [10] * 4
    assert min(counts("cycle_until_all_exhausted")) >= 10
    assert sum(counts("cycle_forever", lambda graph: graph.take(256))) == 256


@pytest.mark.filterwarnings("ignore::forebay.LintWarning")
def test_ranks_share_what_sources_and_samplers_give_b110_b111_b113() -> None:
    for graph in (*numbers(100).values(), fb.from_indexed(range(100)).sample(range(100))):
        shares = [values(graph, "threads:2", ranks=(rank, 5)) for rank in range(5)]
        assert sorted(sum(shares, [])) == list(range(100)) and {len(share) for share in shares} == {20}
    for drop_last, each in ((True, 33), (False, 34)):
        drawn = fb.from_list(range(100)).distributed_sampler(shuffle=False, drop_last=drop_last)
        assert [len(values(drawn, ranks=(rank, 3))) for rank in range(3)] == [each] * 3
    assert values(fb.from_list(range(1, 11)).batch(2, True), ranks=(2, 4)) == [[3, 7]]


@pytest.mark.filterwarnings("ignore::forebay.LintWarning")
@pytest.mark.parametrize("world_size", [1, 2, 3])
def test_shuffled_shards_of_all_sizes_come_once_to_some_rank_b078_b090(world_size: int) -> None:
    ids = [list(range(size * (size - 1) // 2, size * (size + 1) // 2)) for size in range(1, 41)]
    graph = fb.from_list([{"value": shard} for shard in ids]).random_sampler().flat_map(f.each, on="threads").shuffle(20)
    for seed in range(2):
        loaders = [graph.loader(executor="inline", seed=seed, ranks=(rank, world_size)) for rank in range(world_size)]
        epochs = [[[plain(sample) for sample in loader] for loader in loaders] for _ in range(2)]
        assert all(sorted(sum(epoch, [])) == sum(ids, []) for epoch in epochs)
        assert len({tuple(share) for epoch in epochs for share in epoch}) == 2 * world_size


def test_shards_are_drawn_with_replacement_b141(tmp_path: Path) -> None:
    paths = [tmp_path / f"{at}.txt" for at in range(10)]
    for path in paths:
        path.write_text(path.name)
    drawn = fb.files(*paths, open="none").random_sampler(replacement=True, num_samples=27)
    found = [sample["path"] for sample in drawn.loader(executor="inline", seed=1)]
    assert len(found) == 27 and set(found) <= {str(path) for path in paths} and 1 < len(set(found)) < 10 + 1


@pytest.mark.parametrize("kind", numbers(0))
def test_the_state_of_an_end_begins_the_next_epoch_b118(kind: str) -> None:
    graph = numbers(10)[kind].shuffle(5)
    with graph.loader(executor="inline", seed=4, epochs=2) as loader:
        first, state = [plain(sample) for sample in loader], loader.state_dict()
        second = [plain(sample) for sample in loader]
        over = loader.state_dict()
    assert first != second
    with graph.loader(executor="threads:2", seed=4, epochs=2) as loader:
        loader.load_state_dict(state)
        assert [[plain(sample) for sample in epoch] for epoch in loader.epochs()] == [second]
        loader.load_state_dict(over)
        assert list(loader.epochs()) == []


@pytest.mark.parametrize("kind", numbers(0))
def test_states_do_not_drift_b120_b122(kind: str) -> None:
    graph = numbers(60)[kind].shuffle(7).map(f.same, on="threads").batch(3)
    truth = values(graph, seed=4)
    found: list[Any] = []
    state: dict[str, Any] = {}
    for executor in [*EXECUTORS[:2]] * 5:
        with graph.loader(executor=executor, seed=4) as loader:
            for _ in range(4):  # Through JSON, again and again, without a read.
                loader.load_state_dict(state)
                again = json.loads(json.dumps(loader.state_dict()))
                assert not state or again == state
                if state:
                    iter(loader)
                    assert json.loads(loader.state_dict()["snapshot"])["delivered"] == len(found)
                    loader.load_state_dict(state)
            epoch = iter(loader)
            found += [plain(next(epoch)) for _ in range(2)]
            state = json.loads(json.dumps(loader.state_dict()))
    assert found == truth


@pytest.mark.parametrize("kind", numbers(0))
@pytest.mark.parametrize("taken", [0, 7, 32])
def test_a_state_is_exact_behind_what_reads_ahead_b121(kind: str, taken: int) -> None:
    graph = numbers(200)[kind].prefetch(8).batch(6)
    truth = cut(range(200), 6)
    with graph.loader(executor="threads:2", ahead=8) as loader:
        epoch = iter(loader)
        assert [plain(next(epoch)) for _ in range(taken)] == truth[:taken]
        state = loader.state_dict()
    with graph.loader(executor="inline") as loader:
        loader.load_state_dict(state)
        assert [plain(sample) for sample in loader] == truth[taken:]


def test_the_state_of_a_start_gives_everything_again_b124() -> None:
    with fb.from_indexed(range(10)).random_sampler().loader(executor="inline", seed=8) as loader:
        start = loader.state_dict()
        epoch = iter(loader)
        whole = [plain(next(epoch)) for _ in range(4)]
        loader.load_state_dict(loader.state_dict())
        whole += [plain(sample) for sample in loader]
        loader.load_state_dict(start)
        assert [plain(sample) for sample in loader] == whole and sorted(whole) == list(range(10))


def test_epochs_may_be_none_at_all() -> None:
    with fb.from_list([1]).loader(executor="inline", epochs=0) as loader:
        assert list(loader.epochs()) == []
