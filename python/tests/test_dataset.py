"""Datasets: a method for every pipe, forms that come back, and errors that say what was meant."""

from __future__ import annotations

import inspect
import keyword
import pickle
from pathlib import Path
from typing import Any

import make_stubs
import pytest

import forebay as fb


untyped: Any = fb.range(3)


def test_every_pipe_is_a_method_with_its_options() -> None:
    known = fb.plugins.pipes()
    assert len(known) > 80
    dataset = fb.range(3)
    for name, pipe in known.items():
        method = getattr(dataset, name)
        names = [option["name"] for option in pipe["options"]]
        spelt = [option + "_" * keyword.iskeyword(option) for option in names]
        parameters = inspect.signature(method).parameters
        if name in vars(fb.Dataset):  # One that takes functions too.
            assert inspect.Parameter.VAR_KEYWORD in {parameter.kind for parameter in parameters.values()}
            continue
        assert sorted(parameters) == sorted(spelt)
        assert pipe["summary"] in method.__doc__
    assert {"shuffle", "batch", "untar", "decode"} <= set(dir(dataset))


def test_the_stubs_say_what_the_plugins_say() -> None:
    written = (Path(fb.__file__).parent / "_pipes.pyi").read_text(encoding="utf-8")
    assert written == make_stubs.text(), "run python/tests/make_stubs.py"


def test_what_stands_before_a_fork_is_read_once() -> None:
    one, two, three = fb.range(4).fork(3)
    assert [sample["value"] for sample in fb.mux([one, two.map("value=value * 100"), three]).loader(executor="inline")][:6] == [
        0, 0, 0, 1, 100, 1,
    ]  # fmt: skip
    left, right = fb.range(4).fork(2)
    joined = fb.zip([left, right.map("other=value * 100").drop(["value"])])
    assert joined.to_json().count('"pipe": "range"') == 1 and joined.fingerprint()
    assert [dict(sample) for sample in joined.head(2)] == [{"value": 0, "other": 0}, {"value": 1, "other": 100}]
    twice = fb.concat([fb.range(2), fb.range(2)])
    assert twice.to_json().count('"pipe": "range"') == 2, "a value is read again"


def test_forms_come_back(tmp_path: Path) -> None:
    dataset = fb.files("a/*.tar").untar().decode(on_error="skip").shuffle(10).batch(4, drop_last=True)
    line = "files a/*.tar | untar | decode on_error=skip | shuffle 10 | batch 4 drop_last=true"
    assert dataset.to_line().replace("'", "") == line
    (tmp_path / "g.toml").write_text(dataset.to_toml())
    (tmp_path / "g.json").write_text(dataset.to_json())
    for again in (
        fb.Dataset.from_line(dataset.to_line()),
        fb.Dataset.from_toml(dataset.to_toml()),
        fb.Dataset.load(tmp_path / "g.toml"),
        fb.Dataset.load(tmp_path / "g.json"),
    ):
        assert again.fingerprint() == dataset.fingerprint()
        assert again.batch(2).to_line() == dataset.batch(2).to_line()
    assert repr(dataset).startswith("<forebay.Dataset files")


def test_datasets_are_joined_by_pipes_with_several_inputs() -> None:
    left, right = fb.range(3), fb.range(13, start=10)
    both = fb.concat([left, right])
    assert [sample["value"] for sample in both.head(9)] == [0, 1, 2, 10, 11, 12]
    assert [sample["value"] for sample in fb.concat([both, left]).head(9)] == [0, 1, 2, 10, 11, 12, 0, 1, 2]


def test_a_dataset_is_a_value() -> None:
    dataset = fb.range(3)
    longer = dataset.batch(2)
    assert dataset != longer and dataset == fb.range(3)
    assert [sample["value"] for sample in dataset.head()] == [0, 1, 2]


@pytest.mark.parametrize(
    ("make", "error", "said"),
    [
        (lambda: fb.rnage(3), AttributeError, "did you mean 'range'"),
        (lambda: fb.range(3).bacth(2), AttributeError, "did you mean 'batch'"),
        (lambda: fb.range(3).batch(2, sise=3).loader(), fb.InvalidError, "unknown option `sise`"),
        (lambda: untyped.shuffle(2, size=3), TypeError, "twice"),
        (lambda: untyped.shuffle(object()), TypeError, "expected a type that JSON has"),
        (lambda: untyped.shuffle("x").loader(), fb.InvalidError, "size"),
        (lambda: fb.range(3).loader(executor="thraeds"), fb.InvalidError, "thraeds"),
        (lambda: fb.range(3).loader(num_workers=-1), fb.InvalidError, "0 or more"),
        (lambda: fb.range(3).loader(output="tensorflow"), fb.InvalidError, "expected one of"),
        (lambda: fb.range(3).loader(budget="many"), fb.InvalidError, "many"),
        (lambda: fb.open("/nowhere/at/all"), fb.ForebayError, "nowhere"),
        (lambda: fb.Dataset.from_line("range 3 | "), fb.InvalidError, "range 3"),
        (lambda: fb.plugins.add("/nowhere/x.so"), FileNotFoundError, "nowhere"),
    ],
)
def test_what_is_wrong_is_said(make: object, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        make()  # type: ignore[operator]


def test_errors_have_kind_and_place_and_are_pickled(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": \n')
    with pytest.raises(fb.CorruptError) as caught:
        list(fb.files(tmp_path / "a.jsonl").lines().json_lines().loader(num_workers=1))
    error = caught.value
    assert isinstance(error, ValueError) and error.kind == "corrupt"
    assert error.node == "json_lines" and error.plugin is not None and error.plugin.startswith("forebay-json")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), again.context) == (type(error), str(error), error.context)


def test_samples_that_fail_by_path_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"a": 1}\n{"a": \n{"a": 3}\n')
    with fb.open(tmp_path / "a.jsonl").loader(num_workers=1) as loader:
        found: list[int] = []
        with pytest.raises(fb.CorruptError, match="failed once"):
            found.extend(sample["a"] for sample in loader)
        assert [lost.node for lost in loader.quarantine()] == ["json_lines"]
        assert isinstance(loader.quarantine()[0].error, fb.CorruptError)
    with fb.open(tmp_path / "a.jsonl").loader(num_workers=1, allow_failures=True) as loader:
        assert [sample["a"] for sample in loader] == [1, 3]


def test_stats_say_what_limits() -> None:
    with fb.range(1000).shuffle(10).batch(10).loader(num_workers=1) as loader:
        list(loader)
        stats = loader.stats()
    assert [node["node"] for node in stats["nodes"]] == ["range", "shuffle", "batch"]
    assert isinstance(stats["limiting"], str) and stats["limiting"]
