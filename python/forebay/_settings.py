"""Settings of a loader, in the forms that people write."""

from __future__ import annotations

import operator
import os
import sys
from typing import Any

from forebay._errors import InvalidError
from forebay._native import parse_bytes


def executor_of(num_workers: int | None, executor: str | None) -> str | None:
    """Where a loader with these settings runs; None for where its graph says."""
    if num_workers is None:
        return executor
    if executor is not None:
        raise InvalidError("found num_workers and executor, expected one of them")
    if num_workers < 0:
        raise InvalidError(f"num_workers is {num_workers}, expected 0 or more")
    return f"threads:{num_workers}" if num_workers else "inline"


def locked() -> bool:
    """Whether the interpreter has a lock, which one thread at a time holds."""
    enabled: Any = getattr(sys, "_is_gil_enabled", None)
    return enabled is None or bool(enabled())


def ranks_of(ranks: tuple[int, int] | str | None) -> tuple[int, int] | None:
    """Rank and world size."""
    if ranks is None:
        return None
    if ranks == "env":
        missing = [name for name in ("RANK", "WORLD_SIZE") if name not in os.environ]
        if missing:
            raise InvalidError(f"found no {' and '.join(missing)} in the environment, which ranks='env' reads")
        return int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    if isinstance(ranks, str):
        raise InvalidError(f"ranks is {ranks!r}, expected (rank, world_size) or 'env'")
    rank, world_size = ranks
    if not 0 <= rank < world_size:
        raise InvalidError(f"ranks is {ranks}, expected a rank from 0 to one below the world size")
    return rank, world_size


def whole(name: str, value: int | None) -> int | None:
    """A setting that is a whole number, or of a type that says which it is."""
    if value is None:
        return None
    number = operator.index(value)
    if not 0 <= number < 2**64:
        raise InvalidError(f"{name} is {number}, expected a whole number from 0 to 2**64 - 1")
    return number


def bytes_of(size: int | str | None) -> int | None:
    """A size, as a number or as ``"256MiB"``."""
    return parse_bytes(size) if isinstance(size, str) else size
