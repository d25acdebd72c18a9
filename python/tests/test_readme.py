"""Every block of Python in the two READMEs runs, one after the other, from the root of the repository."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("name", ["README.md", "python/README.md"])
def test_blocks_run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks, "there is nothing to run"
    for block in blocks:
        if "torch" in block and importlib.util.find_spec("torch") is None:
            continue
        exec(compile(block, name, "exec"), {})
    assert capsys.readouterr().out, "the examples show something"
