"""What values are in Python, and that arrays show the memory that they were made in."""

from __future__ import annotations

import gc
import io
import json
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import forebay as fb

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


def rows(folder: Path, *values: object) -> str:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return str(path)


def test_plain_values_are_pythons_own(tmp_path: Path) -> None:
    row = {"int": 7, "float": 2.5, "true": True, "text": "é", "none": None, "list": [1, [2, "x"]], "struct": {"a": 1}}
    samples = fb.files(rows(tmp_path, row)).lines().json_lines().head()
    assert samples == [row]
    assert isinstance(samples[0], fb.Batch)
    assert samples[0].key.endswith("rows.jsonl#0") and isinstance(samples[0].uid, int)
    assert type(samples[0]["true"]) is bool


def test_bytes_are_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.bin").write_bytes(b"\x00\xff")
    assert fb.files(tmp_path / "a.bin").head()[0]["bytes"] == b"\x00\xff"


def test_bytes_can_be_views_of_the_memory_that_they_were_read_into(tmp_path: Path) -> None:
    def address(view: object) -> int:
        return int(np.frombuffer(view, np.uint8).ctypes.data)

    with tarfile.open(tmp_path / "a.tar", "w", format=tarfile.USTAR_FORMAT) as tar:
        for name, content in (("1.a", b"x" * 5000), ("1.b", b"\x00\xff")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    graph = fb.files(tmp_path / "a.tar").untar()
    for executor in ("inline", "threads:2", "processes:2"):
        with graph.repeat_each(2).loader(executor=executor, views=True) as loader:
            first, second = list(loader)
        for view in (first["a"], first["b"]):
            assert isinstance(view, memoryview) and view.readonly and (view.format, view.ndim) == ("B", 1)
        assert (bytes(first["a"]), first["b"]) == (b"x" * 5000, b"\x00\xff")
        # Both samples show the file as it lies in memory: the second member's bytes are as far behind the first's as in the file.
        assert address(first["a"]) == address(second["a"])
        assert address(first["b"]) - address(first["a"]) == 5120 + 512
        kept = first["b"]
        del loader, first, second, view
        gc.collect()
        assert kept == b"\x00\xff"
    with graph.batch(1).loader(executor="inline", views=True, output="numpy") as loader:
        (batch,) = loader
    assert isinstance(batch["b"][0], memoryview) and batch["b"] == [b"\x00\xff"]
    assert type(graph.head()[0]["b"]) is bytes


def test_text_of_a_batch_is_a_list(tmp_path: Path) -> None:
    (batch,) = fb.files(rows(tmp_path, {"t": "a"}, {"t": "b"})).lines().json_lines().batch(2).head()
    assert batch["t"] == ["a", "b"]


@pytest.mark.parametrize("dtype", ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"])
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3,), (2, 1, 3), (0, 4)])
def test_every_type_and_shape_comes_as_it_was_saved(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    saved: Any = (np.arange(int(np.prod(shape))) % 2).reshape(shape).astype(dtype)
    np.save(tmp_path / "a.npy", saved)
    (sample,) = fb.open(tmp_path / "a.npy").head()
    (array,) = (value for value in sample.values() if isinstance(value, fb.Array))
    assert array.shape == shape and array.dtype == saved.dtype.name and array.ndim == len(shape)
    assert (array.size, array.nbytes) == (saved.size, saved.nbytes)
    for found in (array.numpy(), np.from_dlpack(array)):
        assert found.dtype == saved.dtype and np.array_equal(found, saved)
    if dtype != "f2":
        assert array.tolist() == saved.tolist()


def test_a_batch_is_shared_and_may_be_written() -> None:
    (batch,) = fb.range(4096).batch(4096).head()
    array = batch["value"]
    assert array.writable
    found = array.numpy()
    assert found.ctypes.data == array.ptr and found.flags.writeable
    found[0] = 99
    assert array.tolist()[0] == 99
    assert np.from_dlpack(array).ctypes.data == array.ptr
    assert memoryview(array).format == "q" and not memoryview(array).readonly


def test_what_others_have_too_is_read_only_and_copied_where_that_cannot_be_said() -> None:
    first, second = fb.range(1024).batch(1024).repeat_each(2).head(2)
    array = first["value"]
    assert not array.writable and not second["value"].writable
    found = array.numpy()
    assert found.ctypes.data == array.ptr and not found.flags.writeable
    with pytest.raises(BufferError, match="must not be written"):
        array.__dlpack__(copy=False)
    shared = np.from_dlpack(array, copy=False)
    assert shared.ctypes.data == array.ptr and not shared.flags.writeable
    copied = np.from_dlpack(array)
    assert copied.ctypes.data != array.ptr and copied.flags.writeable
    copied[0] = 99
    assert second["value"].tolist()[0] == 0


def test_another_device_is_refused() -> None:
    (batch,) = fb.range(2).batch(2).head()
    assert batch["value"].__dlpack_device__() == (1, 0)
    with pytest.raises(BufferError, match="the memory is the processor's"):
        batch["value"].__dlpack__(dl_device=(2, 0))


def test_views_outlive_everything_that_made_them() -> None:
    array = next(iter(fb.range(1000).batch(100).loader(num_workers=2)))["value"]
    gc.collect()
    view = array.numpy()
    capsule = np.from_dlpack(array)
    del array
    gc.collect()
    assert view[99] == 99 and capsule.sum() == 4950


def test_capsules_that_nobody_takes_are_freed() -> None:
    (batch,) = fb.range(2).batch(2).head()
    array = batch["value"]
    before = sys.getrefcount(array)
    for _ in range(100):
        array.__dlpack__(max_version=(1, 0))
        array.__dlpack__(copy=True)
    gc.collect()
    assert sys.getrefcount(array) == before


def test_photos_are_decoded_into_the_batch() -> None:
    dataset = fb.files(PHOTOS / "*.tar").untar().random_resized_crop([32, 32]).batch(16)
    with dataset.loader(num_workers=2, output="numpy") as loader:
        batches = list(loader)
    assert sum(len(batch["jpg"]) for batch in batches) == 198
    assert batches[0]["jpg"].shape == (16, 32, 32, 3) and batches[0]["jpg"].dtype == np.uint8


def test_columns_go_to_arrow(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = arrow.table({"a": [1, 2, None], "b": ["x", "y", "z"]})
    parquet.write_table(table, tmp_path / "t.parquet")
    (sample,) = fb.files(tmp_path / "t.parquet").row_groups().read_columns().head()
    assert list(sample) == ["a", "b"]
    assert isinstance(sample["a"], fb.Columns) and len(sample["a"]) == 3
    found = arrow.table({name: arrow.array(column) for name, column in sample.items()})
    assert found.to_pydict() == table.to_pydict()
    sample["a"].__arrow_c_array__()  # Nobody takes these.
    del sample
    gc.collect()
    assert found.to_pydict() == table.to_pydict()


def test_torch_gets_no_memory_that_must_not_be_written() -> None:
    torch = pytest.importorskip("torch")
    (batch,) = fb.range(1024).batch(1024).head()
    tensor = batch["value"].torch()
    assert tensor.data_ptr() == batch["value"].ptr and tensor.dtype == torch.int64
    first, second = fb.range(1024).batch(1024).repeat_each(2).head(2)
    tensor = first["value"].torch()
    assert tensor.data_ptr() != first["value"].ptr
    tensor += 1
    assert second["value"].tolist()[0] == 0
