"""The class ``DataLoader``: arguments, attributes and state."""

from __future__ import annotations

import base64
import multiprocessing
import os
import pickle
import types
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch
from torch.utils.data import (
    BatchSampler,
    IterableDataset,
    IterDataPipe,
    RandomSampler,
    SequentialSampler,
    _utils,
    graph_settings,
)

import forebay as fb
from forebay.torch import _iterators
from forebay.torch._engine import Engine

FROZEN = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")
METHODS = (None, "multiprocessing", "thread")


class _Forever:
    """The sampler of an iterable dataset: as many of nothing as are wanted."""

    def __iter__(self) -> Iterator[None]:
        while True:
            yield None


class DataLoader:
    """Loads batches of a dataset: a map-style or iterable torch dataset, or a :class:`forebay.Dataset`.

    All arguments are those of ``torch.utils.data.DataLoader``, with the same checks and defaults. The documentation
    lists the differences. There are two more arguments:

    worker_method: ``"multiprocessing"`` or ``"thread"``; unless given, threads if the interpreter has no lock.
    snapshot_every_n_steps: as in torchdata's StatefulDataLoader. A state costs nothing here, so it is always that of
    the last batch.
    """

    _ready = False

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Iterable[Any] | None = None,
        batch_sampler: Iterable[Any] | None = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: Any = None,
        generator: torch.Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
        snapshot_every_n_steps: int = 1,
        worker_method: str | None = None,
    ) -> None:
        _check_numbers(num_workers, timeout, prefetch_factor, persistent_workers)
        if worker_method not in METHODS:
            raise ValueError(f"worker_method is {worker_method!r}, expected one of {METHODS}")
        if worker_method == "thread" and (worker_init_fn is not None or _is_iterable(dataset)):
            raise ValueError("worker_method='thread' has only one process, but an iterable dataset and worker_init_fn need worker processes")
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = 2 if num_workers > 0 and prefetch_factor is None else prefetch_factor
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.in_order = in_order
        self.snapshot_every_n_steps = snapshot_every_n_steps
        self.worker_method = worker_method
        self._is_iterable = _is_iterable(dataset)
        self._is_graph = isinstance(dataset, fb.Dataset)
        if isinstance(dataset, IterDataPipe) and shuffle is not None:
            self.dataset = dataset = graph_settings.apply_shuffle_settings(dataset, shuffle=shuffle)
            shuffle = None
        # Each batch has its worker, as in torch. Else whoever is free makes the next.
        self._takes_turns = self._is_iterable or worker_init_fn is not None
        if self._is_iterable and not self._is_graph:
            _check_iterable(shuffle, sampler, batch_sampler)
        _check_samplers(shuffle, sampler, batch_sampler, batch_size, drop_last)
        if batch_sampler is not None:
            batch_size, drop_last = None, False
        if sampler is None and not self._is_graph:
            if self._is_iterable:
                sampler = _Forever()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None and not self._is_graph:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        self.generator = generator
        if collate_fn is None and not self._is_graph:
            collate_fn = _utils.collate.default_collate if self._auto_collation else _utils.collate.default_convert
        self.collate_fn = collate_fn
        self.persistent_workers = persistent_workers
        self._length_told: int | None = None
        self._place = Place()
        self._resume: Place | None = None
        self._spare: list[list[Engine]] = []
        self._engines: weakref.WeakSet[Engine] = weakref.WeakSet()
        self._iterator: Any = None
        self._graph_loader = self._over_graph(bool(shuffle)) if self._is_graph else None
        self._ready = True
        if num_workers > len(os.sched_getaffinity(0)):
            warnings.warn(
                f"This DataLoader will create {num_workers} worker processes in total. Our suggested max number of worker in "
                f"current system is {len(os.sched_getaffinity(0))}, which is smaller than what this DataLoader is going to create. "
                "Please be aware that excessive worker creation might get DataLoader running slow or even freeze, "
                "lower the worker number to avoid potential slowness/freeze if necessary.",
                stacklevel=2,
            )

    __class_getitem__: Any = classmethod(types.GenericAlias)

    def __setattr__(self, name: str, value: Any) -> None:
        if self._ready and name in FROZEN:
            raise ValueError(f"{name} attribute should not be set after {type(self).__name__} is initialized")
        super().__setattr__(name, value)

    # What torch has under these names.

    @property
    def multiprocessing_context(self) -> Any:
        """How torch would start workers. Forebay always starts them as ``spawn`` does."""
        return self._context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context: Any) -> None:
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
                    f"but got num_workers={self.num_workers}"
                )
            if isinstance(context, str):
                methods = multiprocessing.get_all_start_methods()
                if context not in methods:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start method in "
                        f"{methods!r}, but got multiprocessing_context={context!r}"
                    )
                context = multiprocessing.get_context(context)
            if not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object or a string specifying the start "
                    f"method, but got multiprocessing_context={context}"
                )
            if context.get_start_method() == "fork":
                warnings.warn("workers are started as spawn does, not fork, because a fork can hold locks that are never released", stacklevel=3)
        self._context = context

    @property
    def _auto_collation(self) -> bool:
        return self.batch_sampler is not None

    @property
    def _index_sampler(self) -> Any:
        return self.batch_sampler if self._auto_collation else self.sampler

    def __len__(self) -> int:
        if self._graph_loader is not None:
            return len(self._graph_loader)
        if not self._is_iterable:
            return len(self._index_sampler)
        length = self._length_told = len(self.dataset)
        if self.batch_size is None:
            return length
        return length // self.batch_size if self.drop_last else -(-length // self.batch_size)

    def __bool__(self) -> bool:
        return True

    # Running.

    def __iter__(self) -> Iterator[Any]:
        if self._graph_loader is not None:
            return iter(self._graph_loader)
        if self.num_workers == 0:
            return _iterators.Inline(self)
        if self.persistent_workers:
            if self._iterator is None:
                self._iterator = _iterators.Parallel(self)
            else:
                self._iterator.reset()
            return _iterators.Kept(self, self._iterator)
        return _iterators.Parallel(self)

    @property
    def graph(self) -> fb.Dataset:
        """The graph that the arguments made, as a start for your own."""
        if self._graph_loader is not None:
            return self._graph_loader.dataset
        if self._is_iterable:
            source = fb.from_iterable(self.dataset)
        else:
            source = fb.from_indexed(self.dataset)
            if isinstance(self.sampler, RandomSampler):
                source = source.random_sampler()
            elif self.sampler is not None and not isinstance(self.sampler, SequentialSampler):
                source = source.sample(self.sampler)
        if self.batch_size is None:
            return source
        return source.batch(self.batch_size, self.drop_last)

    def set_epoch(self, epoch: int) -> None:
        """Tells the sampler, or the graph, the epoch of the next ``iter()``."""
        if self._graph_loader is not None:
            return self._graph_loader.set_epoch(epoch)
        going_on = self._resume
        if going_on is None or going_on.epoch + going_on.ended != epoch:
            self._resume, self._place = None, Place(epoch=epoch - 1, ended=True)
        for one in (self.sampler, self.batch_sampler, self.dataset):
            if callable(getattr(one, "set_epoch", None)):
                one.set_epoch(epoch)  # type: ignore[union-attr]

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.__dict__["_engines"] = weakref.WeakSet()

    def worker_processes(self) -> list[int]:
        """The ids of its worker processes."""
        if self._graph_loader is not None:
            return self._graph_loader.worker_processes()
        return [process for engine in self._engines for process in engine.pids()]

    def close(self) -> None:
        """Ends the workers."""
        if self._graph_loader is not None:
            self._graph_loader.close()
        self._iterator = None
        self._spare = []
        for engine in list(self._engines):
            engine.close()
        self._engines.clear()

    # State.

    def state_dict(self) -> dict[str, Any]:
        """The place in the epoch: behind the batches that were taken. You can save it by ``torch.save`` or as JSON."""
        if self._graph_loader is not None:
            return self._graph_loader.state_dict()
        place = self._resume if self._resume is not None else self._place
        if place.yielded and not place.ended and not (self.in_order or self._is_iterable or self.num_workers == 0):
            raise fb.InvalidError("found in_order=False, for which a state cannot say which batches came; save it at the end of an epoch")
        return {"forebay": 1, "place": place.saved()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Makes the next ``iter()`` go on from the state, with any number of workers. ``{}`` starts again."""
        if self._graph_loader is not None:
            return self._graph_loader.load_state_dict(state)
        if not state:
            self._resume, self._place = None, Place()
            return
        if state.get("forebay") != 1 or "place" not in state:
            raise fb.InvalidError("found no state of forebay.torch.DataLoader, expected the result of its state_dict()")
        self._resume = Place.read(state["place"])

    def _take_resume(self) -> Place | None:
        """The place to go on from, which counts once; one at the end of an epoch begins the next."""
        place, self._resume = self._resume, None
        if place is not None and place.ended:
            self._place, place = place, None
        return place

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_engines"]
        state.update(_spare=[], _iterator=None, _resume=self._resume or (self._place if self._place.yielded else None))
        return state

    # Over a graph of Forebay's.

    def _over_graph(self, shuffle: bool) -> fb.Loader:
        if self.worker_init_fn is not None:
            raise ValueError("worker_init_fn does not work with a forebay.Dataset, whose workers run pipes; leave it out")
        if self.batch_sampler is not None:
            raise ValueError("batch_sampler does not work with a forebay.Dataset; use its pipe batch behind a sampler")
        graph: fb.Dataset = self.dataset
        if self.sampler is not None:
            graph = graph.sample(self.sampler)
        elif shuffle:
            graph = graph.random_sampler() if graph._is_indexed else graph.shuffle(10_000)
        if self.batch_size is not None:
            graph = graph.batch(self.batch_size, self.drop_last, collate_fn=self.collate_fn)
        elif self.collate_fn is not None:
            graph = graph.map(self.collate_fn)
        drawn = self.generator.initial_seed() if self.generator is not None else None
        return graph.loader(num_workers=self.num_workers, seed=drawn, output="torch", timeout=self.timeout or None)


class Place:
    """Where an epoch is: how many batches were taken, and what it began with."""

    def __init__(self, epoch: int = -1, yielded: int = 0, ended: bool = False) -> None:
        self.epoch = epoch
        self.yielded = yielded
        self.ended = ended
        self.generator: torch.Tensor | None = None
        self.sampler: Any = None
        self.base_seed = 0
        # How many epochs ago the seed was drawn, and whose turn it is.
        self.round = 0
        self.turn = 0
        self.counts: list[int] = []
        self.active: list[bool] = []
        self._start: str | None = None

    def saved(self) -> dict[str, Any]:
        """As JSON has it."""
        if self._start is None:
            self._start = base64.b64encode(pickle.dumps((self.generator, self.sampler))).decode()
        plain = {name: getattr(self, name) for name in ("epoch", "yielded", "ended", "base_seed", "round", "turn")}
        return {**plain, "start": self._start, "counts": list(self.counts), "active": list(self.active)}

    @classmethod
    def read(cls, saved: Mapping[str, Any]) -> Place:
        place = cls(saved["epoch"], saved["yielded"], saved["ended"])
        place.generator, place.sampler = pickle.loads(base64.b64decode(saved["start"]))
        place._start, place.base_seed = saved["start"], saved["base_seed"]
        place.round, place.turn = saved["round"], saved["turn"]
        place.counts, place.active = list(saved["counts"]), list(saved["active"])
        return place


def _is_iterable(dataset: Any) -> bool:
    return isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")


def _check_numbers(num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool) -> None:
    if num_workers < 0:
        raise ValueError("num_workers option should be non-negative; use num_workers=0 to disable multiprocessing.")
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor < 0:
        raise ValueError("prefetch_factor option should be non-negative")
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_iterable(shuffle: Any, sampler: Any, batch_sampler: Any) -> None:
    for name, given in (("shuffle", shuffle or None), ("sampler", sampler), ("batch_sampler", batch_sampler)):
        if given is not None:
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {name} option, but got {name}={given}"
            )


def _check_samplers(shuffle: Any, sampler: Any, batch_sampler: Any, batch_size: Any, drop_last: bool) -> None:
    if sampler is not None and shuffle:
        raise ValueError("sampler option is mutually exclusive with shuffle")
    if batch_sampler is not None:
        if batch_size != 1 or shuffle or sampler is not None or drop_last:
            raise ValueError(
                "batch_sampler option is mutually exclusive with batch_size, shuffle, sampler, and drop_last"
            )
    elif batch_size is None and drop_last:
        raise ValueError("batch_size=None option disables auto-batching and is mutually exclusive with drop_last")


