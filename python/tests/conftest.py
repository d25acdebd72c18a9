"""What all tests have in common: what is left out is written down, so that `.ci/run` lists it at its end."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped:
        _note(report.nodeid, report.longrepr)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.skipped:
        _note(report.nodeid, report.longrepr)


def _note(test: str, why: object) -> None:
    reason = why[2] if isinstance(why, tuple) else str(why)
    if file := os.environ.get("FOREBAY_TEST_SKIPPED"):
        with Path(file).open("a") as skipped:
            skipped.write(f"{test}: {reason}\n".replace("Skipped: ", ""))
