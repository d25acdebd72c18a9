"""The experiment of "DataLoaders Explained": a training step of 0.1 s, items that take 0.5 ms each, and more and more workers.

    python examples/python/tinyloader.py

With workers, a step takes little more than the 0.1 s of the training alone. It needs torch.
"""

from __future__ import annotations

import sys
import time

import torch

from forebay.torch import DataLoader

SIZE, BATCH, STEP, LOAD = 1024, 64, 0.1, 0.0005


class Slow(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, at: int) -> tuple[torch.Tensor, int]:
        time.sleep(LOAD)
        return torch.zeros((1, 28, 28)), 1


def main(steps: int = SIZE // BATCH) -> None:
    for workers in (0, 1, 2):
        loader = DataLoader(Slow(), batch_size=BATCH, num_workers=workers)
        epoch = iter(loader)
        next(epoch)  # The workers have started.
        time.sleep(STEP)
        begin = time.perf_counter()
        for _ in range(1, steps):
            next(epoch)
            time.sleep(STEP)
        print(f"{workers} workers: {(time.perf_counter() - begin) / (steps - 1) * 1e3:.1f} ms a step")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else SIZE // BATCH)
