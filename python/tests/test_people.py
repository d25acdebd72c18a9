"""What people see: drawings of graphs, tables of samples, folders of pictures, and the command."""

from __future__ import annotations

import base64
import re
import subprocess
import sys
import xml.dom.minidom
import zlib
from pathlib import Path
from typing import Any

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


def test_the_command_gives_the_digest_of_the_photographs(tmp_path: Path) -> None:
    done = command("run", "--digest", f"files '{PHOTOS}/*.tar' | untar | shuffle 50 | batch 8")
    assert done.returncode == 0 and re.search(r"digest\s+\S+", done.stdout), done.stderr
