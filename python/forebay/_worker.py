"""The program of worker processes: this interpreter, which finds the same modules as the one that starts it."""

from __future__ import annotations

import io
import json
import sys

from forebay import _calls
from forebay._native import serve_if_worker

CODE = "import sys; sys.path[:] = __import__('json').loads(sys.argv[1]); from forebay._worker import main; main(sys.argv[2:])"


def command(sent: _calls.Sent | None) -> list[str]:
    """The program and its arguments."""
    path = json.dumps([part or "." for part in sys.path])
    return [sys.executable, "-c", CODE, path, *(sent.args() if sent is not None else [])]


def main(args: list[str]) -> None:
    """Works until the loader is gone."""
    # It ends without a last look at what is buffered.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)
    if args:
        try:
            _calls.receive(*args)
        except FileNotFoundError:
            sys.exit(1)  # The loader ended while this process began. If it did not, it says with which code a worker ended.
    serve_if_worker()
