"""Functions for graphs of the tests: in a module, so that worker processes find them by name."""

from __future__ import annotations

import gc
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any

Sample = dict[str, Any]


def double(sample: Sample) -> Sample:
    return {"value": sample["value"] * 2}


def halves(lists: dict[str, list[int]]) -> dict[str, list[int]]:
    count = len(lists["value"])
    return {"value": [value // 2 for value in lists["value"]], "of": [count] * count}


def odd(sample: Sample) -> bool:
    return bool(sample["value"] % 2)


def twice(sample: Sample) -> Iterator[Sample]:
    yield sample
    yield {"value": -sample["value"]}


def draw(sample: Sample, rng: Any) -> Sample:
    return {"value": sample["value"], "drawn": rng.random()}


def join(samples: list[Sample]) -> Sample:
    return {"value": "-".join(str(sample["value"]) for sample in samples)}


def process(sample: Sample) -> Sample:
    return {"process": os.getpid()}


def fail_at_3(sample: Sample) -> Sample:
    if sample["value"] == 3:
        raise KeyError("three")
    return sample


def value_error_at_10(sample: Sample) -> Sample:
    if sample["value"] == 10:
        raise ValueError("meant")
    return sample


def timeout_error_at_10(sample: Sample) -> Sample:
    if sample["value"] == 10:
        raise TimeoutError("meant")
    return sample


class Box:
    """Has no form of its own."""

    def __init__(self, **held: Any) -> None:
        self.__dict__.update(held)


def boxed(sample: Sample) -> Sample:
    import numpy

    at = sample["value"]
    waves = numpy.full(1000, 1j * at)
    return {"box": Box(floats=numpy.full(2000, float(at)), waves=waves, small=numpy.full(3, at), again=[waves])}


def boxed_tensor(sample: Sample) -> Sample:
    import torch

    return {"box": Box(tensor=torch.full((2000,), sample["value"]))}


class Refused(Exception):
    """Needs two arguments, so its pickle cannot be read."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__("refused")


def refuse(sample: Sample) -> Sample:
    raise Refused(1, 2)


def nothing(sample: Sample) -> None:
    return None


class Counter:
    """Iterates over numbers, and says where it is."""

    def __init__(self, end: int) -> None:
        self.end = end
        self.at = 0
        self.made = 0

    def __iter__(self) -> Iterator[Sample]:
        while self.at < self.end:
            self.at += 1
            self.made += 1
            yield {"value": self.at - 1, "made": self.made}

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


class Squares:
    """Has samples by number."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> Sample:
        if at == 13:
            raise LookupError("thirteen")
        return {"value": at * at}


class Together(Squares):
    """Gets several at once."""

    def __getitems__(self, numbers: list[int]) -> list[Sample]:
        return [{"value": number * number, "of": len(numbers)} for number in numbers]


class Both:
    """Says where it is by itself and by its iterators, each in its own words."""

    def __init__(self, end: int) -> None:
        self.end = end

    def __iter__(self) -> BothIterator:
        return BothIterator(self.end)

    def state_dict(self) -> dict[str, int]:
        return {"whole": 0}

    def load_state_dict(self, state: dict[str, int]) -> None:
        assert "whole" in state, state


class BothIterator:
    def __init__(self, end: int) -> None:
        self.end, self.at = end, 0

    def __iter__(self) -> BothIterator:
        return self

    def __next__(self) -> Sample:
        if self.at == self.end:
            raise StopIteration
        self.at += 1
        return {"value": self.at - 1}

    def state_dict(self) -> dict[str, int]:
        return {"iterator": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["iterator"]


def nested(sample: Sample) -> Sample:
    """Reads as many numbers as the sample says with a loader of its own."""
    import forebay as fb

    return {"value": [one["value"] for one in fb.range(sample["value"]).map(double).loader(executor="inline")]}


def odd_half(sample: Sample) -> bool:
    return bool(sample["value"] // 2 % 2)


def slow(sample: Sample) -> Sample:
    if sample["value"] > 0:
        threading.Event().wait(60)
    return sample


def crash_at_3(sample: Sample) -> Sample:
    if sample["value"] == 3:
        os.kill(os.getpid(), signal.SIGSEGV)
    return sample


class Collecting(Exception):
    """Has the garbage collected where it is read."""

    def __reduce__(self) -> Any:
        return _collected, ()


def _collected() -> Collecting:
    gc.collect()
    return Collecting("collected")


def collect_as_it_is_read(sample: Sample) -> Sample:
    raise Collecting("collected")


class Stepper:
    """Makes iterators that say where they are."""

    def __init__(self, end: int) -> None:
        self.end = end

    def __iter__(self) -> Steps:
        return Steps(self.end)


class Steps:
    def __init__(self, end: int) -> None:
        self.end, self.at = end, 0

    def __iter__(self) -> Steps:
        return self

    def __next__(self) -> int:
        if self.at == self.end:
            raise StopIteration
        self.at += 1
        return self.at - 1

    def state_dict(self) -> dict[str, int]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.at = state["at"]


class Rows:
    """Has samples one by one."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> Sample:
        return {"value": at * at}


class RowsTogether(Rows):
    """Has them together only."""

    def __getitem__(self, at: int) -> Sample:
        raise AssertionError("it was asked for a single one")

    def __getitems__(self, numbers: list[int]) -> list[Sample]:
        return [{"value": number * number} for number in numbers]


def same(sample: Sample) -> Sample:
    return sample


def one_more(sample: Sample) -> Sample:
    return {"value": sample["value"] + 1}


def even(sample: Sample) -> bool:
    return bool(sample["value"] % 2 == 0)


def large(sample: Sample) -> bool:
    return bool(sample["value"] > 100)


def tens(batch: Sample) -> bool:
    return bool(sum(batch["value"].tolist()) % 10 == 0)


def listed(samples: list[Sample]) -> Sample:
    return {"value": [sample["value"] for sample in samples]}


def each(sample: Sample) -> Iterator[Sample]:
    for value in sample["value"]:
        yield {"value": value}


def refuse_even(sample: Sample) -> Sample:
    if sample["value"] % 2 == 0:
        raise ValueError("even")
    return sample


def leave_at_17(sample: Sample) -> Sample:
    if sample["value"] == 17:
        os._exit(123)
    return sample


def exit_at_17(sample: Sample) -> Sample:
    if sample["value"] == 17:
        sys.exit(7)
    return sample


def never_starts() -> Iterator[int]:
    raise ConnectionError("no such stream")


class Numbers:
    """Iterates, and does not say where it is."""

    def __init__(self, end: int) -> None:
        self.end = end

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.end))


class Shuffled:
    """A sampler that draws half of the numbers, always in the same order."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[int]:
        return iter(range(self.count - 1, -1, -2))


def drawn(sample: Sample, rng: Any) -> Sample:
    return {"value": sample["value"] + int(rng.integers(10))}


def shifted(batch: Sample) -> Sample:
    return {"value": batch["value"].numpy() + 1}


def of_even_sum(batch: Sample) -> bool:
    return bool(sum(batch["value"].tolist()) % 2 == 0)


def some_rows(lists: dict[str, list[int]]) -> dict[str, list[int]]:
    """Leaves out every third, and has every fourth twice."""
    kept = [value for value in lists["value"] if value % 3]
    return {"value": kept + [value for value in lists["value"] if value % 4 == 0]}


def refuse_some(sample: Sample) -> Sample:
    if sample["value"] % 7 == 3:
        raise ValueError(f"refused {sample['value']}")
    return sample


class Sampler:
    """Draws another order in each epoch that it is told of, and says where it is."""

    def __init__(self, count: int) -> None:
        self.count, self.epoch, self.at, self.going_on, self.drawn = count, 0, 0, False, 0

    @staticmethod
    def order(count: int, epoch: int) -> list[int]:
        return random.Random(epoch).sample(range(count), count)

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        self.at = self.at if self.going_on else 0
        self.going_on = False
        order = self.order(self.count, self.epoch)
        while self.at < self.count:
            self.at += 1
            self.drawn += 1
            yield order[self.at - 1]
        self.at = 0

    def state_dict(self) -> dict[str, int]:
        return {"epoch": self.epoch, "at": self.at}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.epoch, self.at, self.going_on = state["epoch"], state["at"], True


class Reservoir:
    """So many numbers of a stream, each with the same chance."""

    def __init__(self, stream: int, size: int) -> None:
        self.stream, self.size = stream, size

    def __iter__(self) -> ReservoirIterator:
        return ReservoirIterator(self.stream, self.size)


class ReservoirIterator:
    def __init__(self, stream: int, size: int) -> None:
        self.stream, self.size = stream, size
        self.kept: list[int] | None = None

    def __iter__(self) -> ReservoirIterator:
        return self

    def __next__(self) -> int:
        if self.kept is None:
            rng, self.kept = random.Random(7), []
            for at in range(self.stream):
                if at < self.size:
                    self.kept.append(at)
                elif (place := rng.randrange(at + 1)) < self.size:
                    self.kept[place] = at
        if not self.kept:
            raise StopIteration
        return self.kept.pop()

    def state_dict(self) -> dict[str, Any]:
        return {"kept": None if self.kept is None else list(self.kept)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.kept = state["kept"]


class Epochs:
    """Gives the number of its epoch, of which it is told."""

    epoch = -1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[Sample]:
        yield from [{"value": self.epoch}] * 2
