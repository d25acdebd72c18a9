"""Batches on their way to a device: as torch's tensors, pinned, and copied one ahead of whoever uses them."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from forebay._native import Array, Stock

Change = Callable[[Any], Any]

NO_ACCELERATOR = "'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used."
"""What torch's DataLoader says."""


def has_accelerator() -> bool:
    """Whether pinned memory is of any use."""
    import torch

    return bool(torch.accelerator.is_available())


def each(value: Any, change: Change, of_array: Change | None = None) -> Any:
    """The value with ``change`` done to each tensor in it, in dicts, lists and tuples; also to arrays as tensors, or else what ``of_array`` does."""
    import torch

    if isinstance(value, Array):
        return change(value.torch()) if of_array is None else of_array(value)
    if isinstance(value, torch.Tensor):
        return change(value)
    if isinstance(value, Mapping):
        return {name: each(item, change, of_array) for name, item in value.items()}
    if isinstance(value, tuple):
        items = [each(item, change, of_array) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, list):
        return [each(item, change, of_array) for item in value]
    return value


def moved(value: Any, device: Any, non_blocking: bool = False) -> Any:
    """The value with its tensors on a device."""
    return each(value, lambda tensor: tensor.to(device, non_blocking=non_blocking))


def pinned(value: Any) -> Any:
    """The value with its tensors in pinned memory."""
    return each(value, pin)


def pin(tensor: Any) -> Any:
    """A tensor in pinned memory: the tensor itself if it is there already."""
    return tensor if tensor.is_pinned() else tensor.pin_memory()


class Pinned:
    """The pinned memory in which a loader makes its batches.

    It is torch's own: torch knows who reads it, and uses it again once that is done. What a batch was made in elsewhere is copied.
    """

    SMALL = 2048
    """The loader asks for the memory of shorter ones elsewhere."""
    MOST = 8
    """So many blocks of a length wait to be filled."""

    def __init__(self, stocks: bool) -> None:
        self.stock = Stock()
        self._stocks = stocks
        self._blocks: weakref.WeakValueDictionary[int, Any] = weakref.WeakValueDictionary()

    def of(self, batch: Any) -> Any:
        """The batch as torch's tensors in pinned memory."""
        return each(batch, pin, self._of_array)

    def _of_array(self, array: Array) -> Any:
        """An array as a tensor: a view of the block that it begins, if it does, so that torch knows whose memory it is. Else a copy."""
        import torch

        block = self._blocks.get(array.ptr)
        found = block is not None and block.numel() >= array.nbytes and array.writable
        if self._stocks and array.nbytes >= self.SMALL:
            # One for the one that is gone; where there was none, one more.
            for _ in range(1 if found else 2):
                self._add(block.numel() if block is not None and found else array.nbytes)
        if block is None or not found:
            return self._copied(array.torch())
        return block[: array.nbytes].view(getattr(torch, array.dtype)).view(array.shape)

    def _add(self, size: int) -> None:
        if self.stock.waiting(size) < self.MOST:
            block = self._empty(size)
            self._blocks[block.data_ptr()] = block
            self.stock.add(block, block.data_ptr(), size)

    def _empty(self, size: int) -> Any:
        import torch

        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def _copied(self, tensor: Any) -> Any:
        """A copy in pinned memory. The tensor may seem to be pinned: its memory is part of a block, of which torch does not know that this is read."""
        import torch

        return torch.empty_like(tensor, pin_memory=True).copy_(tensor)


class Streams:
    """The stream of CUDA's that copies, beside the one that computes."""

    def __init__(self, device: Any) -> None:
        import torch

        self._cuda = torch.cuda
        self._device = device
        self._stream = torch.cuda.Stream(device)

    def copying(self) -> AbstractContextManager[Any]:
        """What is begun in here is done by the stream that copies."""
        copying: AbstractContextManager[Any] = self._cuda.stream(self._stream)
        return copying

    def mark(self) -> Any:
        """An event that has passed once all is copied that was begun."""
        return self._stream.record_event()

    def wait(self, event: Any) -> None:
        """Has the stream that computes wait for an event. This thread goes on."""
        self._cuda.current_stream(self._device).wait_event(event)

    def use(self, tensor: Any) -> None:
        """The stream that computes uses a tensor: its memory is not given to another copy before it has."""
        tensor.record_stream(self._cuda.current_stream(self._device))


class Copies:
    """Copies batches to a device: to CUDA's from pinned memory, without waiting for it."""

    def __init__(self, device: Any, streams: Streams | None = None) -> None:
        self._device = device
        self._streams = Streams(device) if streams is None and device.type == "cuda" else streams
        self._pinned: Callable[[Any], Any] = pinned if device.type == "cuda" else lambda batch: batch
        # What is read until an event has passed. Torch knows of its own pinned memory who reads it, and of no other.
        self._read: deque[tuple[Any, Any]] = deque()

    def begin(self, batch: Any) -> tuple[Any, Any]:
        """Begins to copy a batch."""
        streams = self._streams
        if streams is None:
            return moved(batch, self._device), None
        source = self._pinned(batch)
        with streams.copying():
            there = moved(source, self._device, non_blocking=True)
            event = streams.mark()
        self._read.append((event, source))
        while self._read and self._read[0][0].query():
            self._read.popleft()
        return there, event

    def finish(self, there: Any, event: Any) -> Any:
        """The batch, for the stream that computes."""
        if self._streams is not None:
            self._streams.wait(event)
            each(there, self._streams.use)
        return there

    def __del__(self) -> None:
        # What is freed now may be written by others.
        for event, _ in self._read:
            event.synchronize()


LATE = object()
"""What is got if nothing came in time."""


class _Got(NamedTuple):
    """What was got of the run: how many batches of the epoch had come with it, and its copy, which is None at the end."""

    place: int
    copy: tuple[Any, Any] | None


class _Failed(NamedTuple):
    """What was raised as a batch was got, and whether the run has ended by it."""

    error: BaseException
    ended: bool


class Ahead:
    """The batches of an epoch on a device: the next is on its way while one is used.

    fetch: gives the next batch, and None at the end; :data:`LATE` if it is not to wait and nothing is there.
    place: how many of the epoch were delivered before.
    """

    def __init__(self, fetch: Callable[[bool], Any], copies: Copies, place: int) -> None:
        self._fetch = fetch
        self._copies = copies
        self._lock = threading.Lock()
        self._next: _Got | _Failed | None = None
        self._fetched = place
        self.given: int | None = place
        """How many of the epoch whoever iterates has had; None once they know how it ended."""

    def take(self) -> Any:
        """The next batch; None at the end."""
        with self._lock:
            found = self._next or self._get(waits=True)
            self._next = None
            assert found is not None, "it waited"
            if isinstance(found, _Failed):
                self.given = None if found.ended else self.given
                raise found.error
            if found.copy is None:
                self.given = None
                return None
            batch = self._copies.finish(*found.copy)
            # One that is not there yet is not waited for: whoever iterates would have this one late.
            self._next = self._get(waits=False)
            self.given = found.place
            return batch

    def _get(self, waits: bool) -> _Got | _Failed | None:
        """Gets a batch, and begins to copy it; None if it is not to wait and nothing is there."""
        try:
            batch = self._fetch(waits)
        except BaseException as error:
            return _Failed(error, isinstance(error, Exception))
        if batch is LATE:
            return None
        if batch is None:
            return _Got(self._fetched, None)
        self._fetched += 1
        try:
            return _Got(self._fetched, self._copies.begin(batch))
        except Exception as error:
            return _Failed(error, False)


def copies_to(device: Any) -> Copies | None:
    """What copies to a device; nothing does where the batches are there already."""
    return None if device.type == "cpu" else Copies(device)
