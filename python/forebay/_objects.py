"""Objects of Python's as bytes, with the arrays in them apart: those lie in the memory of the run, and are used where they lie."""

from __future__ import annotations

import io
import pickle
import sys
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

from forebay import _calls

SMALL = 4096
"""Arrays of NumPy's, and the buffers of other objects, with fewer bytes stay in the pickle."""


DLPACK = (1, 0)


class _Leaves:
    """What takes arrays out of a pickle."""

    def __init__(self, file: io.BytesIO) -> None:
        leaves: list[Any] = []
        # Not a method: the pickler and its callback would keep each other, and the arrays, until the garbage collector comes by.
        super().__init__(file, protocol=5, buffer_callback=partial(_stays, leaves))  # type: ignore[call-arg]
        self.leaves = leaves
        self.array = getattr(sys.modules.get("numpy"), "ndarray", None)
        self.tensor = getattr(sys.modules.get("torch"), "Tensor", None)

    def persistent_id(self, obj: Any) -> tuple[str, int] | None:
        kind = type(obj)
        if kind is self.array and obj.nbytes >= SMALL and obj.dtype.kind in "biuf" and obj.dtype.itemsize <= 8 and obj.dtype.isnative:
            self.leaves.append(obj)
            return "numpy", len(self.leaves) - 1
        if kind is self.tensor and _plain(obj):
            self.leaves.append(obj)
            return "torch", len(self.leaves) - 1
        return None


def _stays(leaves: list[Any], buffer: pickle.PickleBuffer) -> bool:
    """Whether a buffer stays in the pickle: of an array of some other type, of a table."""
    view = buffer.raw()
    if view.nbytes < SMALL:
        return True
    leaves.append(view)
    return False


class _Packer(_Leaves, pickle.Pickler):
    pass


@cache
def _packer_of_all() -> Any:
    """A pickler that takes along what only this program defines; none where cloudpickle is not installed."""
    try:
        import cloudpickle
    except ImportError:
        return None
    return type("_PackerOfAll", (_Leaves, cloudpickle.CloudPickler), {})


def _plain(tensor: Any) -> bool:
    """Whether a tensor is no more than numbers in the processor's memory. Also of small ones, whose pickle takes 25 us."""
    return bool(
        tensor.device.type == "cpu"
        and tensor.layout is sys.modules["torch"].strided
        and not tensor.requires_grad
        and not tensor.is_nested
        and not tensor.is_quantized
        and not tensor.is_conj()
        and not tensor.is_neg()
    )


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, leaves: _Unread) -> None:
        super().__init__(file, buffers=leaves)
        self.leaves = leaves

    def persistent_load(self, pid: tuple[str, int]) -> Any:
        kind, at = pid
        leaf = self.leaves.named(at)
        if kind == "torch" and leaf.writable:
            # A capsule goes straight to torch's own code. From the array, torch first asks in Python what it can: 50 us in a cold cache.
            from torch import from_dlpack

            return from_dlpack(leaf.__dlpack__(max_version=DLPACK))
        return getattr(leaf, kind)()


class _Unread(Iterator[Any]):
    """Leaves in the order in which they were written; the next is one that has no name in the pickle.

    It knows nothing of its unpickler: in a circle, both would keep the leaves' memory until the garbage collector comes by.
    """

    def __init__(self, leaves: list[Any]) -> None:
        self._leaves = leaves
        self._at = 0

    def __next__(self) -> Any:
        return self.named(self._at)

    def named(self, at: int) -> Any:
        self._at = at + 1
        return self._leaves[at]


def pack(obj: Any) -> tuple[bytes, list[Any]]:
    """The pickle of an object, and the arrays in it that lie apart."""
    file = io.BytesIO()
    packer: Any = _Packer(file)
    try:
        packer.dump(obj)
        by_name = b"__main__" in file.getvalue()
    except (pickle.PicklingError, AttributeError, TypeError):
        if _packer_of_all() is None:
            raise
        by_name = True
    # Other processes have another main module.
    if by_name and (whole := _packer_of_all()) is not None:
        file = io.BytesIO()
        packer = whole(file)
        packer.dump(obj)
    return file.getvalue(), packer.leaves


def unpack(pickled: bytes, leaves: list[Any]) -> Any:
    """The object again."""
    return _calls.loading(lambda: _Unpacker(io.BytesIO(pickled), _Unread(leaves)).load())
