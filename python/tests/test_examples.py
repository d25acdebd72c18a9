"""The examples run, each in a process of its own."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples" / "python"
EXAMPLES = sorted(FOLDER.glob("*.py"))


def test_there_are_examples() -> None:
    assert len(EXAMPLES) >= 5


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(example: Path, tmp_path: Path) -> None:
    if "torch" in example.read_text() and importlib.util.find_spec("torch") is None:
        pytest.skip("torch is not installed")
    args = ["4"] if example.stem == "tinyloader" else []
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example), *args], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0 and done.stdout, done.stderr
