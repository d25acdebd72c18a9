"""Every block of Python in the READMEs and in the documentation runs, one after the other, from the root of the repository."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


PAGES = ["README.md", "python/README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
# Pages of tables and lists.
WITHOUT_CODE = ("docs/index.md", "docs/coming-from/")


def test_there_are_pages() -> None:
    assert len(PAGES) >= 17


@pytest.mark.parametrize("name", [page for page in PAGES if not page.startswith(WITHOUT_CODE)])
def test_blocks_run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)
    assert blocks, "there is nothing to run"
    for block in blocks:
        if "torch" in block and importlib.util.find_spec("torch") is None:
            continue
        exec(compile(block, name, "exec"), {})
    capsys.readouterr()
