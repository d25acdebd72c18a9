"""Workers that answer messages: a graph of two nodes, a source that is fed and a function."""

from __future__ import annotations

import atexit
import queue
import weakref
from collections.abc import Iterator
from typing import Any

import forebay as fb
from forebay.torch._fetch import Message, answer


class Feed:
    """What is put here is what the source of the graph gives, until the end of the epoch."""

    def __init__(self) -> None:
        self._queue: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def begin(self) -> None:
        """Ends the epoch that is read now, and begins another."""
        self.end()
        self._queue = queue.SimpleQueue()

    def put(self, message: Message) -> None:
        self._queue.put(message.pickled())

    def end(self) -> None:
        self._queue.put(None)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._queue.get, None)


_feeds: weakref.WeakSet[Feed] = weakref.WeakSet()


@atexit.register
def _end_feeds() -> None:
    """Lets go of the threads that wait for a message, before the loaders wait for those threads."""
    for feed in list(_feeds):
        feed.end()


class Engine:
    """``workers`` worker processes, or threads, that answer messages in the order in which they were put; or as they can."""

    def __init__(self, workers: int, threads: bool, in_order: bool) -> None:
        self.feed = Feed()
        _feeds.add(self.feed)
        place = "threads" if threads else "process"
        options = {} if in_order else {"unordered": True}
        source = fb.from_iterable(self.feed, on="threads", version="1")
        self.graph = source._calling("py_map", answer, "1", {"takes": "object", "on": place, **options})
        executor = f"threads:{workers}" if threads else f"processes:{workers}"
        self._loader = fb.Loader(self.graph, executor=executor, _chunk=1)
        self._epoch = 0
        self._ends = weakref.finalize(self, self.feed.end)
        self.pids = self._loader.worker_processes

    def begin(self) -> None:
        """Forgets what was asked for and not taken."""
        self.feed.begin()
        self._loader.set_epoch(self._epoch)
        self._epoch += 1
        iter(self._loader)

    def ask(self, message: Message) -> None:
        self.feed.put(message)

    def take(self, timeout: float | None) -> Any:
        """The next answer; TimeoutError if none came within so many seconds."""
        found = self._loader._native.next(None, timeout)
        if found is None:
            raise RuntimeError("the workers ended too early")
        return found["value"]

    def close(self) -> None:
        self._ends()
        self._loader.close()
