"""The pages of the reference that are made of what plugins and the command say of themselves."""

from __future__ import annotations

from pathlib import Path

import make_reference
import pytest

PAGES = make_reference.pages()


@pytest.mark.parametrize("path", sorted(PAGES), ids=lambda path: path.stem)
def test_a_page_is_what_plugins_say(path: Path) -> None:
    written = path.read_text(encoding="utf-8") if path.exists() else ""
    assert written == PAGES[path], f"run {make_reference.COMMAND}"


def test_every_page_is_written() -> None:
    """No page is left of a plugin that is gone."""
    folder = make_reference.FOLDER / "pipes"
    assert set(folder.glob("*.md")) == {path for path in PAGES if path.parent == folder}
    assert len(make_reference.pipes()) > 80
