"""Datasets and functions of the bench: in a module, so that worker processes find them by name."""

from __future__ import annotations

import time
from typing import Any


def double(sample: dict[str, Any]) -> dict[str, Any]:
    return {"value": sample["value"] * 2}


def double_all(lists: dict[str, list[int]]) -> dict[str, list[int]]:
    return {"value": [value * 2 for value in lists["value"]]}


class Small:
    def __init__(self, count: int) -> None:
        self.count = count

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> Any:
        return at, at * 2


class Large(Small):
    def __getitem__(self, at: int) -> Any:
        import torch

        if not hasattr(self, "whole"):
            self.whole = torch.randint(255, (600_000,), dtype=torch.uint8)
        return self.whole


class Slow(Small):
    def __getitem__(self, at: int) -> Any:
        import torch

        time.sleep(0.0005)
        return torch.zeros((1, 28, 28)), 1
