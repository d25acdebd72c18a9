"""Two datasets, of which one gives three samples of four, and a run that goes on in the middle.

    python examples/python/weighted_mix.py
"""

from __future__ import annotations

from itertools import islice

import forebay as fb


def main() -> None:
    web = fb.from_list([{"text": f"page {number}"} for number in range(3000)])
    books = fb.from_list([{"text": f"book {number}"} for number in range(1000)])
    mixed = fb.mix([web.random_sampler(), books.random_sampler()], weights=[0.75, 0.25], stop="first_exhausted").batch(10)
    with mixed.loader(num_workers=2, seed=3) as loader:
        epoch = iter(loader)
        first = [batch["text"] for batch in islice(epoch, 100)]
        state = loader.state_dict()
        rest = [batch["text"] for batch in epoch]
    pages = sum(text.startswith("page") for batch in first for text in batch)
    print(f"{pages} of {len(first) * 10} samples are pages")
    assert 0.7 < pages / (len(first) * 10) < 0.8
    with mixed.loader(executor="processes:2", seed=3) as loader:
        loader.load_state_dict(state)
        assert [batch["text"] for batch in loader] == rest
    print(f"{len(rest)} batches more, the same in other workers")


if __name__ == "__main__":
    main()
