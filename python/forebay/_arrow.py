"""Batches as Arrow has them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from forebay._errors import InvalidError
from forebay._native import Array, Columns

if TYPE_CHECKING:
    from forebay._loader import Loader


def record_batch(fields: dict[str, Any]) -> Any:
    """A batch, of which each field has a value for each sample."""
    import pyarrow

    columns = {name: _column(name, value) for name, value in fields.items()}
    return pyarrow.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _column(name: str, value: Any) -> Any:
    """One field. Numbers of one axis and columns keep their memory; of more axes, each row is a tensor of fixed shape."""
    import pyarrow

    if isinstance(value, Columns):
        return pyarrow.array(value)
    if isinstance(value, list):
        return pyarrow.array(value)
    if isinstance(value, Array) and value.ndim > 0:
        array = value.numpy()
        if array.ndim == 1:
            return pyarrow.array(array)
        return pyarrow.FixedShapeTensorArray.from_numpy_ndarray(array)
    kind = value.dtype if isinstance(value, Array) else type(value).__name__
    raise InvalidError(f"the field {name} is a single {kind}, expected one of a batch: Arrow's tables have rows")


def stream(loader: Loader, requested_schema: Any) -> Any:
    """The capsule of a stream over the loader's next epoch."""
    import pyarrow

    def batches() -> Iterator[Any]:
        for sample in loader:
            yield sample if loader.output == "arrow" else record_batch(dict(sample))

    every = batches()
    first = next(every, None)
    if first is None:
        reader = pyarrow.RecordBatchReader.from_batches(pyarrow.schema([]), [])
    else:
        reader = pyarrow.RecordBatchReader.from_batches(first.schema, itertools.chain([first], every))
    return reader.__arrow_c_stream__(requested_schema)


class Rows:
    """The rows of a table, by number."""

    def __init__(self, data: Any) -> None:
        import pyarrow

        self.table = data if isinstance(data, pyarrow.Table) else pyarrow.table(data)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, at: int) -> dict[str, Any]:
        return self.__getitems__([at])[0]

    def __getitems__(self, numbers: list[int]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.table.take(numbers).to_pylist()
        return found
