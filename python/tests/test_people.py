"""What people see: drawings of graphs, tables of samples, folders of pictures, and the command."""

from __future__ import annotations

import base64
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import threading
import warnings
import xml.dom.minidom
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import functions_of_tests as f
import numpy as np
import pytest

import forebay as fb

PHOTOS = Path(__file__).parents[2] / "examples" / "photos"


def test_a_graph_is_drawn() -> None:
    graph = fb.mix([fb.range(3), fb.range(5).shuffle(2)], weights=[0.5, 0.5]).batch(2)
    drawing = graph._repr_html_()
    document = xml.dom.minidom.parseString(drawing)
    assert len(document.getElementsByTagName("rect")) == 5 and len(document.getElementsByTagName("line")) == 4
    assert all(name in drawing for name in ("range", "shuffle", "mix", "batch"))
    assert "&lt;" in fb.files("<a>")._repr_html_()


def test_a_batch_is_a_table_with_pictures() -> None:
    pictures: Any = np.zeros((2, 3, 4, 3), np.uint8)
    pictures[1] = 255
    items = [{"image": picture, "text": "<b>", "n": n} for n, picture in enumerate(pictures)]
    (batch,) = fb.from_list(items).batch(2).loader(executor="inline")
    shown = batch._repr_html_()
    assert "uint8 [2, 3, 4, 3]" in shown and "<b>" not in shown
    found = [base64.b64decode(text) for text in re.findall("base64,([^\"]*)", shown)]
    assert len(found) == 2
    for png, value in zip(found, (0, 255), strict=True):
        assert png[:8] == b"\x89PNG\r\n\x1a\n" and png[16:24] == bytes([0, 0, 0, 4, 0, 0, 0, 3])
        data = png[png.index(b"IDAT") + 4 : png.index(b"IEND") - 8]
        assert zlib.decompress(data) == (b"\0" + bytes([value]) * 12) * 3


def folder(root: Path) -> Path:
    for name, colour in (("cat", 10), ("dog", 200)):
        (root / name).mkdir()
        for at in range(4):
            (root / name / f"{at}.ppm").write_bytes(b"P6 2 2 255\n" + bytes([colour + at]) * 12)
            (root / name / f"{at}.png").write_bytes(png(colour + at))
    return root


def png(value: int) -> bytes:
    from forebay import _html

    return _html._png(2, 2, 1, (b"\0" + bytes([value, value])) * 2)


def test_a_folder_of_pictures_has_images_and_labels(tmp_path: Path) -> None:
    root = folder(tmp_path)
    found = list(fb.image_folder(root).decode().loader(executor="inline"))
    assert [(sample["label"], sample["class"]) for sample in found] == [(0, "cat")] * 4 + [(1, "dog")] * 4
    assert [sample["image"].tolist()[0][0][0] for sample in found] == [10, 11, 12, 13, 200, 201, 202, 203]
    with fb.image_folder(root, shuffle=True).decode().loader(num_workers=2, seed=1) as loader:
        first, second = ([sample["path"] for sample in loader] for _ in range(2))
    assert sorted(first) == sorted(second) == [sample["path"] for sample in found] and first != second
    swapped = fb.image_folder(root, classes=["dog", "cat"]).loader(executor="inline")
    assert [sample["label"] for sample in swapped] == [1] * 4 + [0] * 4


def _locked() -> bool:
    from forebay._settings import locked

    return locked()


def command(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "forebay", *args], capture_output=True, text=True, timeout=120, check=False)


def test_the_command_comes_with_the_package() -> None:
    done = command("run", "range 100 | batch 10")
    assert done.returncode == 0 and "10 batches" in done.stdout, done
    assert command("run", "--executor", "processes:2", "range 100 | batch 10").returncode == 0
    wrong = command("run", "range 3 | bacth 2")
    assert wrong.returncode == 2 and "batch" in wrong.stderr
    assert command("--version").stdout.startswith("forebay ")
    script = Path(sys.executable).parent / "forebay"
    if not script.exists():
        pytest.skip("the script is not beside the interpreter")
    assert subprocess.run([script, "head", "range 2"], capture_output=True, timeout=60, check=True).stdout


def test_the_commands_workers_are_this_interpreter_where_no_script_is(tmp_path: Path) -> None:
    python = tmp_path / "python"
    python.symlink_to(Path(sys.executable).resolve())
    asked = [str(python), "-m", "forebay", "run", "--executor", "processes:2", "range 100 | batch 10"]
    alone = {"PATH": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(asked, env=alone, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and "10 batches" in done.stdout, done


def test_the_command_and_loaders_agree_on_the_digest_of_the_photographs() -> None:
    graph = fb.files(f"{PHOTOS}/*.tar").untar().shuffle(50).random_resized_crop(32).decode().batch(8)
    done = command("run", "--digest", "--seed", "3", "--json", graph.to_line())
    assert done.returncode == 0, done.stderr
    digest = json.loads(done.stdout)["digest"]
    for executor in ("inline", "threads:2", "processes:2"):
        with graph.loader(executor=executor, seed=3, digest=True) as loader:
            for _ in loader:
                pass
            assert loader.digest() == digest, executor
    with graph.loader() as loader, pytest.raises(fb.InvalidError, match="digest=True"):
        loader.digest()


def test_explain_is_the_text_of_the_command() -> None:
    graph = fb.range(9).batch(3).shuffle(2)
    explained = graph.explain(executor="threads:2")
    done = command("explain", "--executor", "threads:2", graph.to_line())
    assert (done.returncode, done.stdout) == (0, str(explained)), done.stderr
    assert repr(explained) == str(explained) and "&lt;" not in explained._repr_html_()
    assert [lint.node for lint in explained.lints] == ["shuffle"]
    assert "3 batches an epoch" in str(explained) and "may not be meant\n  shuffle: it shuffles the batches" in str(explained)
    assert json.loads(explained.to_json())["nodes"][0]["length"] == 9
    asked = command("explain", "--executor", "threads:2", "--rank", "1/2", "--json", graph.to_line())
    assert json.loads(asked.stdout) == json.loads(graph.explain(num_workers=2, ranks=(1, 2)).to_json())
    with pytest.raises(fb.InvalidError, match="expected one of them"):
        graph.explain(num_workers=2, executor="inline")


def test_explain_shows_where_functions_run() -> None:
    def places(dataset: fb.Dataset, executor: str) -> dict[str, str]:
        document = json.loads(dataset.explain(executor=executor).to_json())
        names = [node["node"] for node in document["nodes"]]
        return {names[at]: segment["on"] for segment in document["segments"] for at in segment["nodes"]}

    away = "threads" if not _locked() else "process"
    assert places(fb.range(9).map(f.double), "threads:2")["py_map"] == away
    assert places(fb.range(9).map(f.double, on="threads"), "threads:2")["py_map"] == "threads"
    assert places(fb.from_iterable(lambda: iter([{"a": 1}])), "threads:2")["py_source"] == "threads"
    assert places(fb.range(9).map(f.double), "inline")["py_map"] == "caller"


def test_explain_warns_of_a_function_that_threads_take_turns_in() -> None:
    chosen = fb.range(9).map(f.double, on="threads")
    lints = chosen.explain(executor="threads:3").lints
    if not _locked():
        assert lints == []
        return
    assert [lint.node for lint in lints] == ["py_map"]
    assert "3 threads call `functions_of_tests.double`" in lints[0].message and "leave out `on`" in lints[0].message
    assert chosen.explain(executor="threads:1").lints == chosen.explain(executor="inline").lints == []
    assert fb.range(9).map(f.double).explain(executor="threads:3").lints == []
    lock = threading.Lock()  # Nobody can pickle it.
    stays = fb.range(9).map(lambda sample: {"value": lock.locked()}).explain(executor="threads:3").lints
    assert [lint.node for lint in stays] == ["py_map"] and "cannot be sent to worker processes" in stays[0].message


def test_the_command_knows_functions_and_says_that_a_saved_graph_has_none(tmp_path: Path) -> None:
    graph = tmp_path / "graph.json"
    graph.write_text(fb.range(9).map(f.double).batch(2).to_json())
    done = command("explain", str(graph))
    assert done.returncode == 0, done.stderr
    assert "py_map: What a function of Python's makes of each sample" in done.stdout
    assert "py_map: it calls the Python function `functions_of_tests.double`, which a saved graph names" in done.stdout
    assert "build the dataset in Python" in done.stdout and "_native" not in done.stdout
    done = command("run", str(graph))
    assert done.returncode == 1 and "a saved graph stores only the names of Python functions" in done.stderr


def test_the_module_is_no_plugin_that_was_refused() -> None:
    for args in (["plugins", "list", "--all"], ["plugins", "doctor"], ["run", "nothing 1 | batch 2"]):
        done = command(*args)
        assert "_native" not in done.stdout + done.stderr and "no plugins" not in done.stderr, done
    with pytest.raises(fb.InvalidError) as raised:
        fb.Dataset.from_line("nothing 1 | batch 2").check()
    assert "_native" not in str(raised.value) and "libraries that are no plugins" not in str(raised.value)


def test_a_loader_warns_of_what_may_not_be_meant() -> None:
    def warned(dataset: fb.Dataset, **settings: Any) -> list[str]:
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            loader = dataset.loader(**settings)
            for _ in loader, loader:
                list(loader)
            loader.close()
        assert all(issubclass(one.category, fb.LintWarning) and one.filename == __file__ for one in found)
        return [str(one.message) for one in found]

    late = fb.range(9).batch(3).shuffle(2)
    (text,) = warned(late, executor="inline")
    assert text.startswith("shuffle: it shuffles the batches of `batch`") and "put `shuffle` before it" in text
    assert warned(late, executor="inline", shuffles=False) == [] == warned(fb.range(9).shuffle(2).batch(3), executor="inline")
    (text,) = warned(fb.range(9).map(f.double).shuffle(2), executor="inline")
    assert text.startswith("py_map (functions_of_tests.double): ") or text.startswith("shuffle: it holds samples as `py_map` gives them")
    # Ranks of one number of samples wait for nobody.
    assert warned(fb.range(9).batch(2), executor="inline", ranks=(0, 3)) == []
    assert warned(fb.from_list([0] * 9).batch(2), executor="inline", ranks=(0, 3)) == []
    assert len(warned(fb.from_list([0] * 10).batch(2), executor="inline", ranks=(0, 3))) == 1
    (text,) = warned(fb.range(10).batch(2), executor="inline", ranks=(0, 3))
    assert text.startswith("shard: a rank may get one more than another") and "ranks add `shard`" in text
    assert warned(fb.range(10).shard(drop_last=True).batch(2), executor="inline", ranks=(0, 3)) == []
    # What a graph asks for is meant.
    for graph in (fb.range(9).map("x=value", unordered=True).batch(3), fb.range(9).batch(3).map(f.same)):
        for executor in ("threads:2", "processes:2"):
            assert warned(graph, executor=executor) == []
    assert warned(fb.range(9).map(f.double, on="threads"), executor="threads:2") == []


def test_a_warning_can_be_an_error_or_be_silenced() -> None:
    late = fb.range(9).batch(3).shuffle(2)
    with pytest.raises(fb.LintWarning, match="put `shuffle` before it") as raised:
        late.loader(executor="threads:1")
    assert (raised.value.node, pickle.loads(pickle.dumps(raised.value)).args) == ("shuffle", raised.value.args)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "shuffle: ", fb.LintWarning)
        with late.loader(executor="inline") as loader:
            again = pickle.dumps(loader)
    assert len(late.head(2)) == 2, "a look at the first samples warns of nothing"
    pickle.loads(again).close()


def test_a_function_that_cannot_be_sent_away_is_told() -> None:
    lock = threading.Lock()  # Nobody can pickle it.
    graph = fb.range(9).map(lambda sample: {"value": lock.locked()})
    if not _locked():
        graph.loader(executor="threads:2").close()
        return
    with pytest.warns(fb.LintWarning, match="cannot be sent to worker processes"):
        graph.loader(executor="threads:2").close()
    graph.loader(executor="threads:1").close()


def test_an_audit_says_what_came_and_how_often(tmp_path: Path) -> None:
    graph = fb.range(30).shuffle(10).batch(4)
    files = [tmp_path / f"rank-{rank}.audit" for rank in range(3)]
    for rank, file in enumerate(files):
        with graph.loader(executor="threads:2", ranks=(rank, 3), seed=3, audit=file) as loader:
            list(loader)
    found = fb.audit(*files)
    assert found and found.exactly_once and (found.given, found.delivered, found.missing, found.twice) == (30, 30, 0, 0)
    assert (len(found.epochs), found.epochs[0].epoch, found.epochs[0].offences) == (1, 0, [])
    done = command("audit", *map(str, files))
    assert (done.returncode, done.stdout) == (0, f"{found!r}\n") and "exactly once: 30 samples delivered" in done.stdout
    # Without a rank's file not all is known.
    part = fb.audit(str(files[0]), files[2])
    assert not part and not part.exactly_once and part.epochs[0].unfinished and "not finished" in repr(part)
    # Rank 1 ran as rank 0 does: its own part is missing, and the other's came twice.
    wrong = tmp_path / "wrong.audit"
    wrong.write_text(files[0].read_text().replace('"rank":0', '"rank":1'))
    found = fb.audit(files[0], wrong, files[2])
    assert not found and found.epochs[0].offences and "NOT exactly once" in repr(found)
    assert command("audit", str(files[0]), str(wrong), str(files[2])).stdout == f"{found!r}\n"
    with pytest.raises(fb.IoError, match="nowhere"):
        fb.audit(tmp_path / "nowhere")
    with pytest.raises(fb.InvalidError, match="found no run in these files"):
        fb.audit()


def test_stats_are_a_mapping_and_a_table() -> None:
    with fb.range(100).map("x=value * 2").batch(10).loader(num_workers=2) as loader:
        assert loader.stats().limiting == loader.stats()["limiting"] == "nothing ran"
        assert [line.split()[-1] for line in repr(loader.stats()).splitlines()[1:-1]] == ["-", "-", "-"]
        list(loader)
        stats = loader.stats()
    assert isinstance(stats, Mapping) and set(stats) > {"nodes", "threads", "seconds", "limiting"} and len(dict(stats)) == len(stats)
    assert [node["samples"] for node in stats["nodes"]] == [100, 100, 10]
    heads, *rows, below = repr(stats).splitlines()
    assert heads.split() == ["node", "gave", "busy", "s", "waiting", "s", "share"]
    assert [row.split()[:2] for row in rows] == [["range", "100"], ["map", "100"], ["batch", "10"]]
    assert all(row.endswith(" %") and len(row) == len(heads) for row in rows), repr(stats)
    assert below.startswith(f"limited by {stats.limiting}; ") and str(stats) == repr(stats)
    table = xml.dom.minidom.parseString(f"<div>{stats._repr_html_()}</div>")
    assert len(table.getElementsByTagName("tr")) == 4 and len(table.getElementsByTagName("td")) == 15


def test_a_batch_of_ragged_fields_says_which_pipes_take_them() -> None:
    items = [{"ids": np.arange(2), "n": 0}, {"ids": np.arange(3), "n": 1}]
    with pytest.raises(fb.InvalidError, match=r"found int64 \[3\] after int64 \[2\]") as raised:
        fb.from_list(items).batch(2).head()
    assert raised.value.context["field"] == "ids"
    for pipe in re.findall("`(.*?)`", raised.value.message):
        (batch,) = fb.from_list(items).pipe(pipe, 2).head()
        assert batch["n"].tolist() == [0, 1], pipe
    assert re.findall("`(.*?)`", raised.value.message) == ["ragged_batch", "padded_batch"]


class Heard(logging.Handler):
    """Keeps what is logged, and says when a word is in it."""

    def __init__(self, word: str) -> None:
        super().__init__()
        self.word = word
        self.found: list[tuple[int, str]] = []
        self.called = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append((record.levelno, record.getMessage()))
        if self.word in record.getMessage():
            self.called.set()


@pytest.mark.parametrize("source", [False, True])
def test_a_stall_is_logged_while_the_loader_waits(source: bool) -> None:
    heard = Heard("py_source" if source else "py_map")

    def held(sample: dict[str, Any]) -> dict[str, Any]:
        assert heard.called.wait(100), "nobody said that this takes long"
        return sample

    def waits() -> Iterator[dict[str, Any]]:
        yield held({"value": 0})

    graph = fb.from_iterable(waits) if source else fb.range(1).map(held, on="threads")
    log = logging.getLogger("forebay")
    log.addHandler(heard)
    try:
        with graph.loader(num_workers=1, _stall=0.001) as loader:
            assert [sample["value"] for sample in loader] == [0]
    finally:
        log.removeHandler(heard)
    assert all(level == logging.WARNING and line.startswith("no sample for ") for level, line in heard.found)
    assert heard.called.is_set()


TRAIN = """
import json, os, signal, sys, zlib
from pathlib import Path
import forebay as fb
photos, checkpoint, dies_at = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
batches = fb.files(photos + "/*.tar").untar().shuffle(50).random_resized_crop(32).decode().flip().batch(8)
loader = batches.loader(num_workers=2, seed=7, epochs=2, output="numpy")
seen = []
if checkpoint.exists():
    saved = json.loads(checkpoint.read_text())
    loader.load_state_dict(saved["data"])
    seen = saved["seen"]
for epoch in loader.epochs():
    for batch in epoch:
        seen.append(zlib.crc32(batch["jpg"].tobytes()))
        if len(seen) == dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        if len(seen) % 5 == 0:
            checkpoint.write_text(json.dumps({"data": loader.state_dict(), "seen": seen}))
print(seen)
"""


def test_a_training_that_is_killed_goes_on_to_the_same_end(tmp_path: Path) -> None:
    def train(checkpoint: str, dies_at: int) -> subprocess.CompletedProcess[str]:
        args = [sys.executable, "-c", TRAIN, str(PHOTOS), str(tmp_path / checkpoint), str(dies_at)]
        return subprocess.run(args, capture_output=True, text=True, timeout=120, check=False)

    truth = train("whole", 0)
    assert truth.returncode == 0 and len(json.loads(truth.stdout)) == 50, truth.stderr
    for dies_at in (23, 38):
        assert train("cut", dies_at).returncode == -9
    assert train("cut", 0).stdout == truth.stdout
