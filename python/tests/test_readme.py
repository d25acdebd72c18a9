"""Every block of Python and of the shell in the READMEs and in the documentation runs, one after the other.

Python runs from the root of the repository. The shell runs from a folder of its own with the repository's folders in it, so that what commands write
is gone afterwards. A block of the shell that cannot run here has the line ``<!-- not run: REASON -->`` before it.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import forebay as fb

ROOT = Path(__file__).parents[2]


PAGES = ["README.md", "python/README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").rglob("*.md"))]
# Pages of tables and lists, and of Rust.
WITHOUT_CODE = ("docs/index.md", "docs/cookbook/index.md", "docs/guide/rust.md", "docs/inside/", "docs/reference/rust.md", "docs/plugin-authors/index.md", "docs/plugin-authors/decoder.md", "docs/plugin-authors/rust.md")
# What commands read.
LINKED = ("core", "examples", "plugins", "tests")
# Packages of others that are not everywhere. A block that names one of them is left out where it is not installed.
OPTIONAL = ("torch", "pandas", "polars", "duckdb")


def blocks_of(name: str, language: str) -> list[str]:
    """The blocks of a page in this language, without those of the shell that say why they do not run."""
    found = re.findall(rf"^(<!-- not run: .+ -->\n)?```{language}\n(.*?)^```$", (ROOT / name).read_text(), re.MULTILINE | re.DOTALL)
    return [block for excused, block in found if not excused]


def test_there_are_pages() -> None:
    assert len(PAGES) >= 30
    assert {"README.md", "docs/guide/graph.md"} <= {page for page in PAGES if blocks_of(page, "sh")}


def test_readme_is_a_first_look() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 120, "what is more than a first look has a page in docs/guide"


def test_links_lead_to_files() -> None:
    links = []
    for page in PAGES:
        text = re.sub(r"^```.*?^```$", "", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL)
        links += [(page, link) for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", text) if "://" not in link]
    assert len(links) >= 50
    for page, link in links:
        assert (ROOT / page).parent.joinpath(link).exists(), f"{page} names {link}"


@pytest.mark.parametrize("name", [page for page in PAGES if not page.startswith(WITHOUT_CODE)])
def test_blocks_run(name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    blocks = blocks_of(name, "python")
    assert blocks or blocks_of(name, "sh"), "there is nothing to run"
    for block in blocks:
        if any(package in block and importlib.util.find_spec(package) is None for package in OPTIONAL):
            continue
        # A script's code stands below `if __name__ == "__main__":`, and must run here too.
        exec(compile(block, name, "exec"), {"__name__": "__main__"} if "__main__" in block else {})
    capsys.readouterr()


@pytest.mark.parametrize("name", [page for page in PAGES if blocks_of(page, "sh")])
def test_commands_run(name: str, tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash, "the commands are bash's"
    for folder in LINKED:
        (tmp_path / folder).symlink_to(ROOT / folder)
    # The command of this package, whatever else the PATH has.
    command = tmp_path / "bin" / "forebay"
    command.parent.mkdir()
    command.write_text(f'#!{bash}\nexec "{sys.executable}" -m forebay "$@"\n')
    command.chmod(0o755)
    path = {**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"}
    for block in blocks_of(name, "sh"):
        ran = subprocess.run([bash, "-euc", block], cwd=tmp_path, env=path, capture_output=True, text=True)
        assert ran.returncode == 0, f"{block}\n{ran.stderr}"


@pytest.mark.parametrize("name", [page for page in PAGES if blocks_of(page, "toml")])
def test_graphs_are_read(name: str) -> None:
    for block in blocks_of(name, "toml"):
        if "[[node]]" in block:
            assert fb.Dataset.from_toml(block).explain()
