"""The program of worker processes: this interpreter, which finds the same modules as the one that starts it."""

from __future__ import annotations

import json
import sys

CODE = "import sys; sys.path[:] = __import__('json').loads(sys.argv[1]); from forebay._native import serve_if_worker; serve_if_worker()"


def command() -> list[str]:
    """The program and its arguments."""
    return [sys.executable, "-c", CODE, json.dumps([part or "." for part in sys.path])]
