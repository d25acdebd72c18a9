"""A dataset of digits as NumPy arrays, batches in random order, and a classifier that learns from them.

    python examples/python/mnist_like.py
"""

from __future__ import annotations

import numpy as np

import forebay as fb


def digits(count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Pictures of bars: the class is the row or column that is bright."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, 10, count)
    pictures = random.normal(0, 20, (count, 28, 28))
    for picture, label in zip(pictures, labels, strict=True):
        if label < 5:
            picture[label * 5 + 2] += 150
        else:
            picture[:, (label - 5) * 5 + 2] += 150
    return pictures.clip(0, 255).astype(np.uint8), labels


class Digits:
    def __init__(self, count: int, seed: int) -> None:
        self.pictures, self.labels = digits(count, seed)

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, at: int) -> dict[str, object]:
        return {"image": self.pictures[at], "label": int(self.labels[at])}


def main() -> None:
    train = fb.from_indexed(Digits(2000, seed=1), version="1").random_sampler().batch(50)
    test = fb.from_indexed(Digits(400, seed=2), version="1").batch(100)
    weights = np.zeros((28 * 28, 10))
    with train.loader(num_workers=2, epochs=3, seed=7, output="numpy") as loader:
        for epoch in loader.epochs():
            for batch in epoch:
                x, y = batch["image"].reshape(-1, 784) / 255, batch["label"]
                scores = x @ weights
                chances = np.exp(scores - scores.max(1, keepdims=True))
                chances /= chances.sum(1, keepdims=True)
                weights -= 0.05 * x.T @ (chances - np.eye(10)[y]) / len(y)
    right = total = 0
    for batch in test.loader(num_workers=2, output="numpy"):
        found = (batch["image"].reshape(-1, 784) / 255 @ weights).argmax(1)
        right, total = right + int((found == batch["label"]).sum()), total + len(found)
    print(f"{right} of {total} digits are recognised")
    assert right > 0.95 * total


if __name__ == "__main__":
    main()
