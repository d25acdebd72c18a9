"""The command ``forebay``, which is a part of this package."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from forebay import _native, _worker, plugins
from forebay._native import command, serve_if_worker

PROGRAM = "FOREBAY_WORKER_PROGRAM"


def main() -> None:
    """Runs the command with the arguments of this program, and ends it."""
    serve_if_worker()
    worker = [] if PROGRAM in os.environ else _worker.command(None)
    # What looks for the command itself finds the script beside the interpreter.
    script = Path(sys.executable).parent / "forebay"
    if script.exists():
        os.environ.setdefault(PROGRAM, str(script))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(command(["forebay", *sys.argv[1:]], _native.__file__, plugins.places(), worker))
