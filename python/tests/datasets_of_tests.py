"""Datasets of torch's kind for the tests: in a module, so that worker processes find them by name."""

# mypy: allow-subclassing-any
from __future__ import annotations

import multiprocessing
import random
import threading
from collections.abc import Iterator
from typing import Any

import numpy
import torch
from torch.utils.data import Dataset, IterableDataset, get_worker_info

MARKS: list[int] = []


class Counted(Dataset[Any]):
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count


class Items(Counted):
    def __getitem__(self, at: int) -> Any:
        return torch.full((3, 2), float(at)), at, {"name": f"item {at}"}


class Pictures(Counted):
    def __getitem__(self, at: int) -> Any:
        return torch.full((300, 200), at)


class Drawing(Counted):
    def __getitem__(self, at: int) -> Any:
        return random.random(), torch.rand(()), at + torch.rand(()).item()


class Who(Counted):
    def __getitem__(self, at: int) -> Any:
        info = get_worker_info()
        assert info is not None
        return info.id, info.num_workers, list(MARKS), info.seed


class Failing(Counted):
    def __getitem__(self, at: int) -> int:
        if at == 3:
            raise KeyError("three")
        return at


class Stuck(Counted):
    def __getitem__(self, at: int) -> int:
        threading.Event().wait(60)
        return at


class Stream(IterableDataset[int]):
    def __init__(self, end: int) -> None:
        self.end = end

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        first, step = (info.id, info.num_workers) if info is not None else (0, 1)
        yield from range(first, self.end, step)


def as_list(items: list[Any]) -> list[Any]:
    return items


def init_worker(worker: int) -> None:
    MARKS.append(worker)


def seed_worker(worker: int) -> None:
    random.seed(torch.initial_seed() % 2**32)


class Shuffled(IterableDataset[int]):
    """Draws its order when it is iterated."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        for value in torch.randperm(self.count).tolist():
            yield value


class Uneven(IterableDataset[str]):
    """Its first worker has fewer items."""

    def __iter__(self) -> Iterator[str]:
        info = get_worker_info()
        assert info is not None
        for at in range(1 if info.id == 0 else 6):
            yield f"{info.id}.{at}"


class Sour(IterableDataset[int]):
    """Raises in place of its third item, and goes on."""

    def __iter__(self) -> Iterator[int]:
        return SourItems()


class SourItems(Iterator[int]):
    def __init__(self) -> None:
        self.at = -1

    def __next__(self) -> int:
        self.at += 1
        if self.at == 2:
            raise KeyError("sour")
        if self.at == 6:
            raise StopIteration
        return self.at


class Bulk(Counted):
    """Takes an index, or a list of them."""

    def __init__(self) -> None:
        super().__init__(6)

    def __getitem__(self, at: Any) -> Any:
        return torch.tensor(at) * 10


class Together(Counted):
    """Has its items together only."""

    def __init__(self) -> None:
        super().__init__(7)

    def __getitem__(self, at: int) -> int:
        raise AssertionError("it was asked for a single one")

    def __getitems__(self, numbers: list[int]) -> list[int]:
        return numbers


class DrawingOfAll(Counted):
    """Draws of all three generators that nobody hands it."""

    def __getitem__(self, at: int) -> Any:
        return random.random(), numpy.random.random(), torch.rand(()).item()


class Counting(Counted):
    def __getitem__(self, at: int) -> int:
        return at


class Sharing(Counted):
    """Writes to what it shares with its workers, and to a tensor of its own."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        spawn = multiprocessing.get_context("spawn")
        self.sum = spawn.Value("i", 0)
        self.event = spawn.Event()
        self.queue = spawn.Queue()
        self.numbers = spawn.RawArray("i", count)
        self.shared = torch.zeros(count).share_memory_()
        self.own = torch.zeros(count)

    def __getitem__(self, at: int) -> int:
        with self.sum.get_lock():
            self.sum.value += at
        self.event.set()
        self.queue.put(at)
        for place in (self.numbers, self.shared, self.own):
            place[at] = at
        return at


class Held(IterableDataset[int]):
    """Its second worker gives nothing until it is let go."""

    def __init__(self) -> None:
        self.let_go = multiprocessing.get_context("spawn").Event()

    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        assert info is not None
        if info.id == 1:
            self.let_go.wait()
        yield from [info.id] * 10


class Barrier(Counted):
    """Gives an item once as many workers as there are items each have one."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.barrier = multiprocessing.get_context("spawn").Barrier(count)

    def __getitem__(self, at: int) -> int:
        self.barrier.wait(60)
        return at
