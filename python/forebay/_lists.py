"""Lists that all worker processes of a loader read from one memory."""

from __future__ import annotations

import array
import mmap
import os
import pickle
import weakref
from collections.abc import Iterable
from typing import Any

from forebay import _calls


class Items:
    """Items of a list. Sent to a worker they stay where they are: as pickles in memory that both see, of which one is read when it is asked for."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._items = list(items)
        self._shared: tuple[str, int] | None = None

    def __len__(self) -> int:
        return len(self._items)

    def __getitem__(self, at: int) -> Any:
        return self._items[at]

    def __reduce__(self) -> tuple[Any, ...]:
        if not _calls.sending():
            return Items, (self._items,)
        if self._shared is None:
            self._shared = self._share()
        return Seen, self._shared

    def _share(self) -> tuple[str, int]:
        number = os.memfd_create("forebay-list")
        weakref.finalize(self, os.close, number)
        ends = array.array("Q", [0])
        with os.fdopen(os.dup(number), "wb") as file:
            for item in self._items:
                file.write(_calls.dump("an item of the list", item))
                ends.append(file.tell())
            ends.tofile(file)
        return f"/proc/{os.getpid()}/fd/{number}", len(self._items)


class Seen:
    """The items of another process."""

    def __init__(self, path: str, count: int) -> None:
        with open(path, "rb") as file:
            self._memory = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        self._count = count
        self._ends = memoryview(self._memory)[-8 * (count + 1) :].cast("Q")

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, at: int) -> Any:
        part = memoryview(self._memory)[self._ends[at] : self._ends[at + 1]]
        return _calls.loading(lambda: pickle.loads(part))
