"""The Python package beside its peers, in one run: what each row takes, and its bar.

``python benches/python/bench.py [CASES]`` with the built wheel installed. Peers that are not installed are left out, and that is said. Each figure is the
best of several runs, taken by turns.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import util
from pathlib import Path
from typing import Any

import items
import forebay as fb

ROUNDS = 5
ROOT = Path(__file__).parents[2]
PHOTOS = f"files '{ROOT}/examples/photos/*.tar' | untar | shuffle 100 | random_resized_crop 224 | decode | flip | normalize | batch 32"

Row = tuple[str, str, str]


def has(module: str) -> bool:
    return util.find_spec(module) is not None


def cpu() -> float:
    """CPU seconds of this process and of its children that ended."""
    return sum(use.ru_utime + use.ru_stime for use in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)))


def best(work: Callable[[], Any], clock: Callable[[], float] = time.perf_counter, rounds: int = ROUNDS) -> float:
    """The least that a call of ``work`` takes."""
    found = []
    for _ in range(rounds):
        begin = clock()
        work()
        found.append(clock() - begin)
    return min(found)


def drain(loader: Any) -> None:
    for _ in loader:
        pass


def bench_import() -> Iterator[Row]:
    def run(code: str) -> Callable[[], Any]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    bare, whole = best(run("pass"), rounds=15), best(run("import forebay"), rounds=15)
    yield "import forebay, beyond bare Python", f"{(whole - bare) * 1e3:.0f} ms", "40 ms"
    code = "import forebay, threading, os; print(len(os.listdir('/proc/self/task')))"
    threads = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()
    yield "threads after import", threads, "1"
    place = Path(fb.__file__).parent
    size = sum(file.stat().st_size for file in place.rglob("*") if file.is_file())
    yield "size of the package, unpacked", f"{size / 1e6:.0f} MB", "wheel 30 MB"


def bench_batch() -> Iterator[Row]:
    batches = 20_000
    graph = fb.range(64 * batches).enumerate("n").batch(64)
    pairs = [(seconds_of(graph, "inline"), best(lambda: drain(graph.loader(executor="inline")), rounds=1)) for _ in range(ROUNDS)]
    rust, python = (min(column) / batches * 1e6 for column in zip(*pairs, strict=True))
    yield "hand a batch of two fields to Python", f"{python - rust:.1f} us beyond {rust:.1f} of forebay run", "15 us"


def seconds_of(graph: fb.Dataset, executor: str) -> float:
    """How long the command ran this graph."""
    run = [sys.executable, "-m", "forebay", "run", "--executor", executor, "--json", graph.to_line()]
    return float(json.loads(subprocess.run(run, check=True, capture_output=True, text=True).stdout)["seconds"])


def bench_tar() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path, samples = Path(folder) / "a.tar", 4000
        with tarfile.open(path, "w") as tar:
            for at in range(samples):
                for extension, size in (("jpg", 20_000), ("cls", 3)):
                    info = tarfile.TarInfo(f"{at:06}.{extension}")
                    info.size = size
                    tar.addfile(info, fileobj=open("/dev/urandom", "rb"))
        graph = fb.files(str(path)).untar()
        taken = best(lambda: drain(graph.loader(executor="inline")), time.process_time)
        yield "tar samples as dicts of bytes, CPU", f"{taken / samples * 1e6:.2f} us", "5 us"
        if has("webdataset"):
            import webdataset

            def peer() -> None:
                drain(webdataset.WebDataset(str(path), shardshuffle=False))

            yield "  webdataset", f"{best(peer, time.process_time, 2) / samples * 1e6:.2f} us", ""


def bench_map() -> Iterator[Row]:
    count = 300_000
    cases = {
        "range, map(python), batch 64, inline": (fb.range(count).map(items.double).batch(64), "350 ns"),
        "  batched": (fb.range(count).map(items.double_all, batched=True, batch_size=64).batch(64), "60 ns"),
        "  an expression": (fb.range(count).map("value=value * 2").batch(64), ""),
    }
    for name, (graph, bar) in cases.items():
        taken = best(lambda graph=graph: drain(graph.loader(executor="inline")))  # type: ignore[misc]
        yield name, f"{taken / count * 1e9:.0f} ns", bar
    if has("torch"):
        import torch

        def peer() -> None:
            drain(torch.utils.data.DataLoader(items.Small(count // 10), batch_size=64))

        yield "  torch, a map-style dataset", f"{best(peer, rounds=2) / count * 1e10:.0f} ns", ""


def bench_torch() -> Iterator[Row]:
    if not has("torch"):
        yield "DataLoader beside torch's", "NOT MEASURED: torch is not installed", ""
        return
    import torch
    from forebay.torch import DataLoader

    torch.set_num_threads(1)

    def epoch(kind: Any, dataset: Any, batch_size: int | None) -> Callable[[], None]:
        loader = kind(dataset, batch_size=batch_size, num_workers=2, persistent_workers=True)
        drain(loader)  # The workers have started.
        return lambda: drain(loader)

    count = 60_000
    torchs, ours = (epoch(kind, items.Small(count), 64) for kind in (torch.utils.data.DataLoader, DataLoader))
    pairs = [(best(torchs, rounds=1), best(ours, rounds=1)) for _ in range(3)]
    t, o = (min(column) / count * 1e6 for column in zip(*pairs, strict=True))
    yield "map-style dataset, 2 workers, an item", f"{o:.2f} us; torch {t:.2f}: {o / t:.2f} of it", "a third"
    count = 2000
    torchs, ours = (epoch(kind, items.Large(count), None) for kind in (torch.utils.data.DataLoader, DataLoader))
    pairs = [(best(torchs, rounds=1), best(ours, rounds=1)) for _ in range(3)]
    t, o = (count * 0.6 / min(column) / 1e3 for column in zip(*pairs, strict=True))
    yield "600 KB arrays from 2 workers", f"{o:.1f} GB/s; torch {t:.1f}", "5 GB/s"


def bench_steps() -> Iterator[Row]:
    if not has("torch"):
        return
    from forebay.torch import DataLoader

    for workers in (2, 4, 8):
        import warnings

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            loader = DataLoader(items.Slow(2048), batch_size=64, num_workers=workers, persistent_workers=True)
        drain(loader)
        epoch = iter(loader)
        next(epoch)
        time.sleep(0.1)
        begin, steps = time.perf_counter(), 0
        for _ in epoch:
            time.sleep(0.1)
            steps += 1
        yield f"steps of 100 ms, {workers} workers", f"{(time.perf_counter() - begin) / steps * 1e3:.2f} ms", "100.5 ms"
        loader.close()


def bench_json() -> Iterator[Row]:
    with tempfile.TemporaryDirectory() as folder:
        path, lines = Path(folder) / "a.jsonl", 20_000
        text = json.dumps({"id": 7, "text": "lorem ipsum dolor " * 80, "score": 0.5, "tags": ["a", "b"]})
        path.write_text((text + "\n") * lines)
        graph = fb.files(str(path)).lines().json_lines()
        ours = best(lambda: drain(graph.loader(executor="inline")), time.process_time) / lines
        yield f"JSON lines of {len(text)} bytes to dicts, CPU", f"{ours * 1e6:.2f} us", "orjson's"
        for name in ("orjson", "json"):
            if has(name):
                loads = __import__(name).loads

                def peer(loads: Any = loads) -> None:
                    with path.open("rb") as file:
                        for line in file:
                            loads(line)

                yield f"  {name}", f"{best(peer, time.process_time) / lines * 1e6:.2f} us", ""
        columns = fb.files(str(path)).lines().json_lines().batch(1000)
        arrow = best(lambda: drain(columns.loader(executor="inline", output="arrow")), time.process_time) / lines if has("pyarrow") else None
        if arrow is not None:
            yield "  in batches, to Arrow", f"{arrow * 1e6:.2f} us", "a third of it"


def bench_photos() -> Iterator[Row]:
    code = f"import forebay as fb, sys; print(next(iter(fb.Dataset.from_line({PHOTOS!r}).loader(num_workers=2)))['jpg'].shape)"
    first = best(lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True))
    yield "first batch of photos, from process start", f"{first * 1e3:.0f} ms", "250 ms"
    graph = fb.Dataset.from_line(PHOTOS.replace("untar |", "untar | repeat 8 |"))
    output = "torch" if has("torch") else "numpy"
    def python() -> float:
        loader = graph.loader(num_workers=2, output=output)
        begin = time.perf_counter()
        drain(loader)
        return time.perf_counter() - begin

    pairs = [(seconds_of(graph, "threads:2"), python()) for _ in range(ROUNDS)]
    theirs, ours = (min(column) for column in zip(*pairs, strict=True))
    yield f"photos to {output} batches, two threads", f"{theirs / ours * 100:.0f} % of the rate of forebay run", "97 %"


def bench_workers() -> Iterator[Row]:
    def memory(count: int) -> float:
        with fb.range(100_000).map(items.double).batch(64).loader(executor=f"processes:{count}") as loader:
            epoch = iter(loader)
            for _ in range(200):
                next(epoch)
            return sum(pss(process) for process in loader.worker_processes()) / count

    yield "memory of a worker with Python functions (PSS)", f"{memory(2) / 1e6:.0f} MB", "40 MB"


def pss(process: int) -> float:
    lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    return next(float(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))


def bench_resume() -> Iterator[Row]:
    graph = fb.range(1_000_000).shuffle(1000).map(items.double).batch(64)
    with graph.loader(executor="processes:2", seed=1) as loader:
        epoch = iter(loader)
        for _ in range(len(loader) // 2):
            next(epoch)
        state = loader.state_dict()

    def begin(state: Any) -> float:
        with graph.loader(executor="threads:1", seed=1) as loader:
            if state is not None:
                loader.load_state_dict(state)
            at = time.perf_counter()
            next(iter(loader))
            return time.perf_counter() - at

    new, resumed = (min(begin(one) for _ in range(ROUNDS)) for one in (None, state))
    yield "resume at 50 % on other workers, beyond a new epoch", f"{(resumed - new) * 1e3:.1f} ms", "20 ms"


CASES = {name.removeprefix("bench_"): case for name, case in list(globals().items()) if name.startswith("bench_")}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", choices=[[], *CASES], default=[])
    wanted = parser.parse_args().cases or list(CASES)
    print(f"Python {sys.version.split()[0]}, {len(os.sched_getaffinity(0))} cores, {time.strftime('%d %B %Y')}")
    for case in wanted:
        for name, found, bar in CASES[case]():
            print(f"{name:56} {found:44} {bar}", flush=True)


if __name__ == "__main__":
    main()
