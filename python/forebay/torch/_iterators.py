"""Iterators over one epoch of a DataLoader: in this thread, or by workers."""

from __future__ import annotations

import itertools
import sys
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
from torch.utils.data import IterDataPipe, _utils, graph_settings

from forebay._errors import InvalidError
from forebay.torch._engine import Engine
from forebay.torch._fetch import End, Fetcher, Message, Raised, Sent, Setup

if TYPE_CHECKING:
    from forebay.torch._dataloader import DataLoader, Place


class Epoch(Iterator[Any]):
    """What all iterators do: draw what torch draws, in its order, and keep the place."""

    def __init__(self, loader: DataLoader) -> None:
        # A loader keeps the iterator of workers that stay. That must not keep the loader, or both would wait for the garbage collector.
        self._owner: Callable[[], DataLoader | None] = weakref.ref(loader) if loader.persistent_workers else lambda: loader
        self._group: Any = None
        self._called = f"enumerate(DataLoader)#{type(self).__name__}.__next__"
        self._pins = loader.pin_memory and torch.accelerator.is_available()
        if loader.pin_memory and loader.pin_memory_device:
            warnings.warn(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                f"ignore pin_memory_device='{loader.pin_memory_device}'.",
                stacklevel=4,
            )
        if loader.pin_memory and not self._pins:
            warnings.warn(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used.",
                stacklevel=4,
            )

    @property
    def _loader(self) -> DataLoader:
        loader = self._owner()
        assert loader is not None, "whoever has the iterator has its loader"
        return loader

    def _start(self, keeps_seed: bool = False) -> Place:
        """Begins an epoch, or goes on in that of a state: its place. The sampler's iterator stands where the place says."""
        from forebay.torch._dataloader import Place

        loader = self._loader
        known = loader._take_resume()
        place = known or Place(loader._place.epoch + 1)
        sampler = loader._index_sampler
        self._dataset = loader.dataset
        if known is None:
            place.generator = (loader.generator or torch.default_generator).get_state()
            inner = _stateful(loader)
            place.sampler = inner.state_dict() if inner is not None else None
            self._seed_pipes()
            self._sampler_iter = iter(sampler)
            before = loader._place
            if keeps_seed and before.epoch >= 0:  # Torch draws none for workers that stay.
                place.base_seed, place.round = before.base_seed, before.round + 1
            else:
                place.base_seed = _draw_base(loader)
        else:
            self._go_on(known)
        loader._place = place
        return place

    def _go_on(self, place: Place) -> None:
        """Draws what was drawn before the place again. Torch's own generator is left as it was."""
        loader = self._loader
        generator = loader.generator or torch.default_generator
        now = generator.get_state()
        if place.generator is not None:
            generator.set_state(place.generator)
        inner = _stateful(loader)
        if inner is not None and place.sampler is not None:
            inner.load_state_dict(place.sampler)
        self._seed_pipes()
        self._sampler_iter = iter(loader._index_sampler)
        if place.round == 0:
            _draw_base(loader)
        if not loader._is_iterable:
            # One more is drawn, since some samplers draw a seed with the first.
            drawn = list(itertools.islice(self._sampler_iter, place.yielded + 1))
            self._sampler_iter = itertools.chain(drawn[place.yielded :], self._sampler_iter)
        self._pass_over(place)
        if loader.generator is None:
            generator.set_state(now)

    def _pass_over(self, place: Place) -> None:
        """Draws of the dataset here what was drawn of it before the place."""

    def _seed_pipes(self) -> None:
        """Seeds the random pipes of torch's own DataPipes, which draws a number first."""
        if isinstance(self._loader.dataset, IterDataPipe):
            drawn = torch.tensor(_draw(self._loader))
            if dist.is_available() and dist.is_initialized():
                if self._group is None:
                    self._group = dist.new_group(backend="gloo")
                dist.broadcast(drawn, src=0, group=self._group)
            shared = torch.Generator().manual_seed(int(drawn))
            self._dataset = graph_settings.apply_random_seed(self._loader.dataset, shared)

    def __next__(self) -> Any:
        if torch.autograd._profiler_enabled():
            with torch.autograd.profiler.record_function(self._called):
                return self._next()
        return self._next()

    def _next(self) -> Any:
        """The next batch."""
        raise NotImplementedError

    def _count(self, place: Place) -> None:
        """One more batch is taken."""
        place.yielded += 1
        told = self._loader._length_told
        if self._loader._is_iterable and told is not None and place.yielded > told:
            more = ""
            if self._loader.num_workers > 0:
                more = (
                    "For multiprocessing data-loading, this could be caused by not properly configuring the "
                    "IterableDataset replica at each worker. Please see "
                    "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for examples."
                )
            warnings.warn(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {told}"
                f"(when accessing len(dataloader)), but {place.yielded} samples have been fetched. {more}",
                stacklevel=4,
            )

    def _pinned(self, data: Any) -> Any:
        return _utils.pin_memory.pin_memory(data) if self._pins else data

    def _setup(self) -> Setup:
        loader = self._loader
        return Setup(
            dataset=self._dataset,
            collate_fn=loader.collate_fn,  # type: ignore[arg-type]
            is_iterable=loader._is_iterable,
            auto_collation=loader._auto_collation,
            drop_last=loader.drop_last,
            num_workers=loader.num_workers,
            worker_init_fn=loader.worker_init_fn,
            shard=(dist.get_rank(), dist.get_world_size()) if dist.is_available() and dist.is_initialized() else (0, 1),
        )

    def __len__(self) -> int:
        return len(self._loader._index_sampler)

    def __getstate__(self) -> Any:
        raise NotImplementedError("an iterator cannot be pickled; use the state_dict() of its loader")


def _draw(loader: DataLoader) -> int:
    """A number of the loader's generator, as torch draws its base seed."""
    return int(torch.empty((), dtype=torch.int64).random_(generator=loader.generator).item())


def _draw_base(loader: DataLoader) -> int:
    """The seed of new workers. For DataPipes torch then draws once more."""
    seed = _draw(loader)
    if loader.num_workers > 0 and isinstance(loader.dataset, IterDataPipe):
        _draw(loader)
    return seed


def _stateful(loader: DataLoader) -> Any:
    """The sampler that says where it is, if one does."""
    for one in (loader.sampler, loader.batch_sampler):
        if hasattr(one, "state_dict") and hasattr(one, "load_state_dict"):
            return one
    return None


class Inline(Epoch):
    """Gets each batch when it is asked for."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        if loader.timeout:
            raise AssertionError(f"found timeout={loader.timeout} and num_workers=0: a batch that is made in this process cannot time out; use workers")
        self._fetcher: Fetcher | None = None
        self._at = self._start()
        if self._fetcher is None:
            self._fetcher = self._setup().fetcher()

    def _pass_over(self, place: Place) -> None:
        _check_workers(self._loader, place, 0)
        self._fetcher = self._setup().fetcher()
        if self._loader._is_iterable:
            for _ in range(place.yielded):
                self._fetcher._next(next(self._sampler_iter))

    def _next(self) -> Any:
        assert self._fetcher is not None
        try:
            data = self._fetcher.fetch(next(self._sampler_iter))
        except StopIteration:
            self._at.ended = True
            raise
        self._count(self._at)
        return self._pinned(data)


def _check_workers(loader: DataLoader, place: Place, count: int) -> None:
    """Refuses to go on in an iterable dataset with other workers: each has its own part of it."""
    if loader._is_iterable and place.yielded and len(place.counts) != count:
        found = len(place.counts)
        raise InvalidError(
            f"found the state of {found} workers of an iterable dataset, but num_workers={count}; use as many, because each worker has its own part"
        )


class Parallel(Epoch):
    """Has workers make the batches: as many are asked for ahead as torch does, and one more for each that is taken."""

    def __init__(self, loader: DataLoader) -> None:
        super().__init__(loader)
        method = loader.worker_method
        free = not getattr(sys, "_is_gil_enabled", lambda: True)()
        self._threads = method == "thread" or (method is None and free and not loader._takes_turns)
        self._engines = _workers(loader, self._threads)
        # An iterator that is dropped leaves its workers to the next.
        self._gives_back = weakref.finalize(self, _give_back, weakref.ref(loader), self._engines)
        self._sent: Sent | None = None
        self.reset()

    def reset(self) -> None:
        """Begins the next epoch."""
        loader = self._loader
        self._at = self._start(keeps_seed=self._sent is not None and loader.persistent_workers)
        # Of torch's DataPipes each epoch has its own seeds.
        if self._sent is None or not loader.persistent_workers or isinstance(loader.dataset, IterDataPipe):
            if self._sent is not None:
                self._sent.close()
            self._sent = Sent(self._setup(), self._threads)
            weakref.finalize(self, self._sent.close)
        for engine in self._engines:
            engine.begin()
        count = len(self._engines)
        _check_workers(loader, self._at, count)
        if len(self._at.counts) != count:
            self._at.counts = _dealt(self._at, count)
            self._at.active = [True] * count
            self._at.turn = self._at.yielded % count
        self._asked = list(self._at.counts)
        self._drawn = self._at.yielded
        self._turn = self._at.turn
        self._more = True
        self._waiting: list[int] = []
        for _ in range(_ahead(loader)):
            self._ask()

    def _ask(self) -> None:
        """Asks for one more batch, of the worker whose turn it is."""
        if not self._more:
            return
        try:
            index = next(self._sampler_iter)
        except StopIteration:
            self._more = False
            return
        at, place, loader = self._next_turn(), self._at, self._loader
        if at is None or self._sent is None:
            self._more = False
            return
        number = self._asked[at]
        seed: int | None = (place.base_seed + 0x9E3779B97F4A7C15 * (self._drawn + 1)) % 2**63
        if loader.worker_init_fn is not None or loader._is_iterable:
            seed = None  # It may have seeded the workers itself, or draws of an iterator go on.
        own = (place.base_seed + 0x9E3779B97F4A7C15 * place.round) % 2**63
        worker = at if loader._takes_turns else -1
        self._engines[at].ask(Message(self._sent.path, place.epoch, worker, number, own, seed, index))
        self._asked[at] += 1
        self._drawn += 1
        self._waiting.append(at)

    def _next_turn(self) -> int | None:
        """The engine whose turn it is; none where all have ended. Without an order, one that has enough to do is passed over."""
        loader, active = self._loader, self._at.active
        for _ in self._engines:
            at = self._turn
            self._turn = (at + 1) % len(self._engines)
            if active[at] and (loader.in_order or self._waiting.count(at) < max(1, _ahead(loader) // sum(active))):
                return at
        return None

    def _next(self) -> Any:
        while self._waiting:
            at, data = self._take()
            if not self._at.active[at]:
                continue
            if isinstance(data, End):
                self._at.active[at] = False
                self._ask()
                continue
            self._ask()
            self._at.counts[at] += 1
            self._at.turn = (at + 1) % len(self._engines)
            self._count(self._at)
            if isinstance(data, Raised):
                data.reraise()
            return self._pinned(data)
        self._at.ended = True
        raise StopIteration

    def _shutdown_workers(self) -> None:
        """Ends the workers. Torch's iterator has this under this name, and others call it."""
        if self._gives_back.detach() is None:
            return
        loader = self._loader
        for engine in self._engines:
            engine.close()
            loader._engines.discard(engine)
        self._waiting, self._more = [], False
        if loader._iterator is self:
            loader._iterator = None

    def _take(self) -> tuple[int, Any]:
        """The answer that is waited for longest, and of which engine; or the first that comes, if the order does not count."""
        limit = self._loader.timeout or None
        begin = time.monotonic()
        whose = self._waiting[:1] if self._loader.in_order else list(dict.fromkeys(self._waiting))
        while True:
            for at in whose:
                # Of several, the last is waited for a moment before all are asked again.
                wait = limit if len(whose) == 1 else 0.001 * (at == whose[-1])
                try:
                    data = self._engines[at].take(wait)
                except TimeoutError:
                    if limit is not None and time.monotonic() - begin >= limit:
                        raise RuntimeError(f"DataLoader timed out after {self._loader.timeout} seconds") from None
                    continue
                self._waiting.remove(at)
                return at, data


class Kept(Iterator[Any]):
    """The iterator of workers that stay, as it is given to people: it keeps the loader, which they may drop."""

    def __init__(self, loader: DataLoader, inner: Parallel) -> None:
        self._loader = loader
        self._inner = inner

    def __next__(self) -> Any:
        return next(self._inner)

    def __len__(self) -> int:
        return len(self._inner)

    def __getstate__(self) -> Any:
        return self._inner.__getstate__()

    def _shutdown_workers(self) -> None:
        self._inner._shutdown_workers()


def _ahead(loader: DataLoader) -> int:
    """How many batches are asked for before they are wanted."""
    return (loader.prefetch_factor or 0) * loader.num_workers or 1


def _dealt(place: Place, count: int) -> list[int]:
    """How many batches each of so many workers has given."""
    return [(place.yielded - at + count - 1) // count for at in range(count)]


def _workers(loader: DataLoader, threads: bool) -> list[Engine]:
    """Workers that wait for something to do, or new ones: one engine for all, or one for each worker where they take turns."""
    if loader._spare:
        return loader._spare.pop()
    if loader._takes_turns:
        made = [Engine(1, threads, True) for _ in range(loader.num_workers)]
    else:
        made = [Engine(loader.num_workers, threads, loader.in_order)]
    loader._engines.update(made)
    return made


def _give_back(loader: weakref.ref[DataLoader], engines: list[Engine]) -> None:
    """The iterator is gone: its workers are the next one's, or end with their loader."""
    owner = loader()
    if owner is not None:
        for engine in engines:
            engine.feed.end()
        owner._spare.append(engines)
