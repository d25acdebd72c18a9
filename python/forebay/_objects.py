"""Objects of Python's as bytes, with the arrays in them apart: those lie in the memory of the run, and are used where they lie."""

from __future__ import annotations

import io
import pickle
import sys
from typing import Any

SMALL = 4096
"""Arrays of NumPy's with fewer bytes stay in the pickle."""


class _Packer(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self.leaves: list[Any] = []
        self.array = getattr(sys.modules.get("numpy"), "ndarray", None)
        self.tensor = getattr(sys.modules.get("torch"), "Tensor", None)

    def persistent_id(self, obj: Any) -> tuple[str, int] | None:
        kind = type(obj)
        if kind is self.array and obj.nbytes >= SMALL and obj.dtype.kind in "biuf" and obj.dtype.isnative:
            self.leaves.append(obj)
            return "numpy", len(self.leaves) - 1
        if kind is self.tensor and _plain(obj):
            self.leaves.append(obj)
            return "torch", len(self.leaves) - 1
        return None


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
    def __init__(self, file: io.BytesIO, leaves: list[Any]) -> None:
        super().__init__(file)
        self.leaves = leaves

    def persistent_load(self, pid: tuple[str, int]) -> Any:
        kind, at = pid
        return getattr(self.leaves[at], kind)()


def pack(obj: Any) -> tuple[bytes, list[Any]]:
    """The pickle of an object, and the arrays in it that lie apart."""
    file = io.BytesIO()
    packer = _Packer(file)
    packer.dump(obj)
    return file.getvalue(), packer.leaves


def unpack(pickled: bytes, leaves: list[Any]) -> Any:
    """The object again."""
    return _Unpacker(io.BytesIO(pickled), leaves).load()
