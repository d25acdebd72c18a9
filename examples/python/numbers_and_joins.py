"""Numbers, three branches of them, and a join: the first example of PyTorch's DataPipes RFC, with the same output.

    python examples/python/numbers_and_joins.py
"""

from __future__ import annotations

from typing import Any

import forebay as fb


def times_100(sample: dict[str, Any]) -> dict[str, Any]:
    return {"value": sample["value"] * 100}


def times_111(sample: dict[str, Any]) -> dict[str, Any]:
    return {"value": sample["value"] * 111}


def main() -> None:
    plain, second, third = fb.range(4).fork(3)
    joined = fb.mux([plain, second.map(times_100), third.map(times_111)])
    truth = [sample["value"] for sample in joined.loader(executor="inline")]
    print(*truth)
    # Branches may run on threads and in processes: the output is the same.
    for executor in ("threads:2", "processes:2"):
        with joined.loader(executor=executor) as loader:
            assert [sample["value"] for sample in loader] == truth
    print("the same on threads and in processes")


if __name__ == "__main__":
    main()
