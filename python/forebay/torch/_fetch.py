"""What workers do for a DataLoader: items of a dataset, put together."""

from __future__ import annotations

import itertools
import os
import pickle
import random
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch.utils.data import IterDataPipe, MapDataPipe, _utils, graph_settings

from forebay import _calls
from forebay.torch import _shared


@dataclass
class Setup:
    """What the workers of one epoch are told."""

    dataset: Any
    collate_fn: Callable[[Any], Any]
    is_iterable: bool
    auto_collation: bool
    drop_last: bool
    num_workers: int
    worker_init_fn: Callable[[int], None] | None = None
    # The rank of this process, and of how many.
    shard: tuple[int, int] = (0, 1)

    def fetcher(self, worker: int = 0) -> Fetcher:
        """One for this worker. Of torch's DataPipes it reads its own part."""
        if isinstance(self.dataset, (IterDataPipe, MapDataPipe)):
            rank, ranks = self.shard
            graph_settings.apply_sharding(self.dataset, ranks * max(self.num_workers, 1), worker * ranks + rank)
        return Fetcher(self)


class Fetcher:
    """Gets batches of a dataset, one after the other."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        # What worker_init_fn raised.
        self.failed: Raised | None = None
        self.epoch = 0
        self.given = 0
        self.over = False
        self._iterator: Iterator[Any] | None = None

    def fetch(self, index: Any) -> Any:
        """The batch of an index, or of a list of them; of an iterable dataset the next so long."""
        collate = self.setup.collate_fn
        if self.setup.is_iterable:
            return collate(self._next(index))
        dataset = self.setup.dataset
        if not self.setup.auto_collation:
            return collate(dataset[index])
        together = getattr(dataset, "__getitems__", None)
        return collate(together(index) if together else [dataset[one] for one in index])

    def _next(self, index: Any) -> Any:
        """The next items; StopIteration at the end."""
        if self._iterator is None:
            self._iterator = iter(self.setup.dataset)
        if self.over:
            raise StopIteration
        if not self.setup.auto_collation:
            return next(self._iterator)
        found = []
        for _ in index:
            try:
                found.append(next(self._iterator))
            except StopIteration:
                self.over = True
                break
        if not found or (self.setup.drop_last and len(found) < len(index)):
            raise StopIteration
        return found

    def skip(self, count: int, index: Any) -> None:
        """Passes over so many batches."""
        while self.given < count:
            self.given += 1
            try:
                self._next(index)
            except StopIteration:
                raise
            except Exception:  # It was raised in place of that batch.
                continue


@dataclass
class Raised:
    """What a dataset raised, in place of a batch."""

    exception: BaseException | None
    text: str
    where: str

    @classmethod
    def of(cls, exception: Exception, where: str) -> Raised:
        import traceback

        text = "".join(traceback.format_exception(exception))
        try:
            pickle.loads(pickle.dumps(exception))
        except Exception:
            return cls(None, text, where)
        return cls(exception, text, where)

    def reraise(self) -> None:
        """Raises it where the batch was wanted: the very exception, with its worker's traceback as the cause."""
        if self.exception is None:
            raise RuntimeError(f"an exception that cannot be sent was raised {self.where}:\n{self.text}")
        self.exception.add_note(self.where)
        raise self.exception from _calls.RemoteTraceback(self.text)


class End:
    """In place of a batch: the dataset of this worker has no more."""


class Message(NamedTuple):
    """What a worker is asked for: the batch of ``index``, the ``number``th of its worker in this epoch, under the setup in a file.

    worker: which one it is; -1 for whichever gets the message.
    own_seed: what a worker's random choices come from when it begins, to which its number is added.
    seed: what those of this batch come from; none where they go on from those before.
    """

    setup: str
    epoch: int
    worker: int
    number: int
    own_seed: int
    seed: int | None
    index: Any

    def pickled(self) -> bytes:
        """As bytes. A plain tuple takes half the time, as it looks nothing up."""
        return pickle.dumps(tuple(self))


@dataclass
class _Here:
    """The setups that are in use in this process."""

    setups: dict[str, Setup] = field(default_factory=dict)
    fetchers: dict[tuple[str, int], Fetcher] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


_here = _Here()


def answer(message: bytes) -> Any:
    """What a node of the graph calls: the batch that a message asks for."""
    asked = Message(*pickle.loads(message))
    if asked.worker < 0 and _in_worker():
        asked = asked._replace(worker=int(os.environ["FOREBAY_WORKER"].split("/")[0]))
    fetcher = _fetcher(asked)
    where = f"in DataLoader worker process {asked.worker}" if _in_worker() else "in a DataLoader worker thread"
    if fetcher.failed is not None:
        return fetcher.failed
    try:
        if fetcher.setup.is_iterable:
            fetcher.skip(asked.number, asked.index)
            fetcher.given += 1
        if asked.seed is not None and _in_worker():
            seed(asked.seed)
        return fetcher.fetch(asked.index)
    except StopIteration:
        return End()
    except Exception as error:
        return Raised.of(error, where)


def _in_worker() -> bool:
    return "FOREBAY_WORKER" in os.environ


def _fetcher(asked: Message) -> Fetcher:
    """The fetcher of this setup, which is begun with its first message; an iterable dataset is iterated anew in each epoch."""
    place = (asked.setup, asked.worker)
    with _here.lock:
        known = _here.fetchers.get(place)
        if known is None:
            if _in_worker():
                _here.fetchers.clear()  # Of an epoch that is over.
            setup = _here.setups.get(asked.setup)
            known = _begin(asked, setup if setup is not None else load(asked.setup))
        elif known.epoch != asked.epoch and known.failed is None and known.setup.is_iterable:
            if _in_worker():
                seed(asked.own_seed + asked.worker)
            known = known.setup.fetcher(asked.worker)
        known.epoch = asked.epoch
        _here.fetchers[place] = known
        return known


def _begin(asked: Message, setup: Setup) -> Fetcher:
    if not _in_worker():
        return setup.fetcher(max(asked.worker, 0))
    own = asked.own_seed + asked.worker
    seed(own)
    _utils.worker._worker_info = _utils.worker.WorkerInfo(
        id=asked.worker, num_workers=setup.num_workers, seed=own, dataset=setup.dataset
    )
    torch.set_num_threads(1)
    fetcher = setup.fetcher(asked.worker)
    if setup.worker_init_fn is not None:
        try:
            setup.worker_init_fn(asked.worker)
        except Exception as error:
            fetcher.failed = Raised.of(error, f"in worker_init_fn of DataLoader worker process {asked.worker}")
    return fetcher


def seed(number: int) -> None:
    """Seeds the generators that datasets draw from without being given one."""
    random.seed(number)
    torch.default_generator.manual_seed(number)  # torch.manual_seed asks every device: 70 us.
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(number % 2**32)


_numbers = itertools.count()


class Sent:
    """A setup where the workers of this process find it, until it is closed."""

    def __init__(self, setup: Setup, threads: bool) -> None:
        self.number: int | None = None
        if threads:
            self.path = f"here/{id(self)}"
            _here.setups[self.path] = setup
            return
        self.shared = _shared.Shared()
        with self.shared as kinds:
            pickled = _calls.dump("the dataset or a function of the DataLoader", setup, kinds)
        document = pickle.dumps((pickled, _calls.main_of_this()))
        self.number = _calls.memory("forebay-setup", document)
        # A descriptor's number is used again, and a worker must see that this is another setup.
        self.path = f"/proc/{os.getpid()}/fd/{self.number}?{next(_numbers)}"

    def close(self) -> None:
        _here.setups.pop(self.path, None)
        for place in [place for place in _here.fetchers if place[0] == self.path]:
            _here.fetchers.pop(place, None)
        if self.number is not None:
            os.close(self.number)
            self.number = None
            self.shared.close()


def load(path: str) -> Setup:
    """The setup that the loader's process has in this file."""
    with open(path.partition("?")[0], "rb") as file:
        pickled, main = pickle.load(file)
    if main is not None:
        _calls.run_main(main)
    setup: Setup = pickle.loads(pickled)
    return setup
