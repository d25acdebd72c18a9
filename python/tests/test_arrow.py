"""Batches as Arrow's: for pyarrow, pandas, polars and whoever reads its streams."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import forebay as fb

pa = pytest.importorskip("pyarrow")


def test_a_dataset_is_a_table() -> None:
    table = pa.table(fb.range(10).batch(4))
    assert table.to_pydict() == {"value": list(range(10))} and table.column("value").num_chunks == 3


def test_a_loader_gives_its_epochs() -> None:
    with fb.range(10).shuffle(10).batch(4).loader(num_workers=2, seed=3) as loader:
        first, second = pa.table(loader).to_pydict(), pa.table(loader).to_pydict()
    assert sorted(first["value"]) == list(range(10)) and first != second


def test_numbers_keep_their_memory_and_columns_theirs(tmp_path: Path) -> None:
    import pyarrow.parquet as parquet

    parquet.write_table(pa.table({"n": [1, 2, None], "text": ["a", None, "c"]}), tmp_path / "a.parquet")
    (batch,) = fb.files(str(tmp_path / "*.parquet")).row_groups().read_columns().loader(output="arrow")
    assert batch.to_pydict() == {"n": [1, 2, None], "text": ["a", None, "c"]}
    blocks = fb.from_list([{"block": np.arange(2000)}]).loader(executor="inline")
    (sample,) = blocks
    (batch,) = fb.from_list([{"block": sample["block"]}]).loader(executor="inline", output="arrow")
    assert batch.column(0).buffers()[1].address == sample["block"].ptr


def test_pictures_are_tensors_of_fixed_shape_and_text_is_text() -> None:
    items = [{"image": np.full((2, 3, 1), n, np.uint8), "text": f"t{n}"} for n in range(5)]
    table = pa.table(fb.from_list(items).batch(2))
    assert table.column("image").type == pa.fixed_shape_tensor(pa.uint8(), (2, 3, 1))
    assert table.column("text").to_pylist() == ["t0", "t1", "t2", "t3", "t4"]
    assert table.column("image").chunk(2).to_numpy_ndarray().tolist() == [[[[4]] * 3] * 2]


def test_what_is_no_batch_is_refused() -> None:
    with pytest.raises(fb.InvalidError, match="(?s)found a single int64.*put `batch`"):
        pa.table(fb.range(3))


def test_polars_and_pandas_read_batches() -> None:
    graph = fb.range(10).batch(4)
    assert pa.table(graph).to_pydict() == {"value": list(range(10))}
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(graph)["value"].to_list() == list(range(10))


def test_the_first_batch_says_what_columns_there_are() -> None:
    def table(*items: object) -> object:
        return pa.table(fb.from_list([{"a": item} for item in items]).batch(1)).column("a").to_pylist()

    assert table(1, -2, None) == [1, -2, None]
    assert table(0.5, 1, -2) == [0.5, 1.0, -2.0] and table([0.5], [1, None]) == [[0.5], [1.0, None]]
    assert table("a", None, "ü") == ["a", None, "ü"] and table(b"a", b"") == [b"a", b""]
    assert table([1, 2], [], [None]) == [[1, 2], [], [None]]
    assert table({"x": [True], "y": "t"}, {"x": [False], "y": None}) == [{"x": [True], "y": "t"}, {"x": [False], "y": None}]
    with pytest.raises(pa.ArrowInvalid, match="InvalidError: found text, and int64 in the first batch .field a"):
        table(1, "a")
    with pytest.raises(pa.ArrowInvalid, match="found the field b, which the first batch lacks"):
        pa.table(fb.from_list([{"a": 1}, {"b": 1}]).batch(1))
    assert pa.table(fb.range(0).batch(2)).num_rows == 0


def test_arrow_needs_no_pyarrow() -> None:
    code = """
import sys
sys.modules["pyarrow"] = None
import forebay as fb
rows = fb.from_arrow(fb.from_list([{"n": n, "text": f"t{n}"} for n in range(9)]).batch(4))
assert [(row["n"], row["text"]) for row in rows.loader(executor="inline")] == [(n, f"t{n}") for n in range(9)]
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


@pytest.mark.parametrize("executor", ["inline", "processes:2"])
def test_rows_of_tables_are_samples(executor: str) -> None:
    table = pa.table({"n": range(20), "text": [f"t{n}" for n in range(20)]})
    rows = list(fb.from_arrow(table).random_sampler().loader(executor=executor, seed=2))
    assert sorted(row["n"] for row in rows) == list(range(20)) and all(row["text"] == f"t{row['n']}" for row in rows)
    assert [row["n"] for row in fb.from_arrow(fb.range(9).batch(2)).map("n=value").loader(executor="inline")] == list(range(9))
