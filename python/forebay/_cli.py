"""The command ``forebay``, which is a part of this package."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from forebay import _native, plugins
from forebay._native import command, serve_if_worker

PROGRAM = "FOREBAY_WORKER_PROGRAM"


def main() -> None:
    """Runs the command with the arguments of this program, and ends it."""
    serve_if_worker()
    # The script beside the interpreter is the program of workers too.
    script = Path(sys.executable).parent / "forebay"
    if script.exists():
        os.environ.setdefault(PROGRAM, str(script))
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(command(["forebay", *sys.argv[1:]], _native.__file__, plugins.places()))
