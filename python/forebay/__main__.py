"""``python -m forebay`` is the command ``forebay``."""

from __future__ import annotations

from forebay._cli import main

main()
