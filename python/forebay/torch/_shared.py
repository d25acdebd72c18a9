"""What a dataset shares with its workers: the locks, values and queues of multiprocessing, and tensors in shared memory."""

from __future__ import annotations

import fcntl
import io
import os
import stat
from collections.abc import Callable, Mapping
from multiprocessing import context, reduction
from typing import Any

import torch
import torch.multiprocessing  # It says how tensors are shared.

Reducer = Callable[[Any], Any]


class Descriptor:
    """A descriptor of the loader's process, which a worker opens."""

    def __init__(self, path: str, mode: int) -> None:
        self.path = path
        self.mode = mode

    def detach(self) -> int:
        """The descriptor in this process, which the caller closes."""
        return os.open(self.path, self.mode | os.O_CLOEXEC)


class Shared:
    """While it is entered, objects of multiprocessing can be pickled, as if a process were being spawned. Workers find them until it is closed."""

    def __init__(self) -> None:
        self._kept: list[int] = []

    def __enter__(self) -> Mapping[type, Reducer]:
        context.set_spawning_popen(self)  # type: ignore[arg-type]
        table = reduction.ForkingPickler(io.BytesIO()).dispatch_table
        return {kind: _if_shared(reducer) if _is_torchs(kind) else reducer for kind, reducer in table.items()}

    def __exit__(self, *error: object) -> None:
        context.set_spawning_popen(None)

    def close(self) -> None:
        """Closes what workers may open."""
        while self._kept:
            os.close(self._kept.pop())

    # What multiprocessing asks of the process that it spawns.

    def duplicate_for_child(self, number: int) -> int:
        """Keeps a descriptor open."""
        self._kept.append(os.dup(number))
        return self._kept[-1]

    def DupFd(self, number: int) -> Descriptor:  # noqa: N802
        """What the worker gets in place of a descriptor."""
        if stat.S_ISSOCK(os.fstat(number).st_mode):
            raise TypeError("found a socket, which cannot be sent; use multiprocessing.Pipe(duplex=False)")
        mode = fcntl.fcntl(number, fcntl.F_GETFL) & os.O_ACCMODE
        return Descriptor(f"/proc/{os.getpid()}/fd/{number}", mode)


def _is_torchs(kind: type) -> bool:
    return issubclass(kind, (torch.Tensor, torch.TypedStorage, torch.UntypedStorage))


def _if_shared(reducer: Reducer) -> Reducer:
    """Others than what is shared already are copied: a worker that writes to its own data changes nobody else's, as with a fork."""

    def reduce(obj: Any) -> Any:
        inner = getattr(obj, "_untyped_storage", obj)  # A typed storage warns when it is asked.
        if inner.device.type == "cpu" and not inner.is_shared():
            return obj.__reduce_ex__(5)
        return reducer(obj)

    return reduce
