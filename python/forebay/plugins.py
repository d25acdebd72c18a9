"""The plugins of this package, and those that are found.

The search order is: files and folders given to :func:`add`, those that packages offer by the entry point
``forebay.plugins``, the variable ``FOREBAY_PLUGIN_PATH``, the folder of this package, the user's and the system's
folders.
"""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from forebay import _native
from forebay._native import Registry

_lock = threading.Lock()
_added: list[str] = []
_registry: Registry | None = None
_pipes: dict[str, dict[str, Any]] = {}


def add(path: str | os.PathLike[str]) -> None:
    """Adds a file or folder to search for plugins, before all others."""
    global _registry, _pipes
    found = Path(path).absolute()
    if not found.exists():
        raise FileNotFoundError(f"found nothing at {found}, expected a plugin or a folder of plugins")
    with _lock:
        _added.insert(0, str(found))
        _registry, _pipes = None, {}


def registry() -> Registry:
    """The plugins that there are now."""
    global _registry
    with _lock:
        if _registry is None:
            _registry = Registry(places(), _native.__file__)
        return _registry


def _offered() -> list[str]:
    """The files and folders that installed packages name."""
    from importlib.metadata import entry_points  # It takes as long to import as all the rest.

    found = []
    for entry in entry_points(group="forebay.plugins"):
        place = entry.load()
        found.append(os.fspath(place() if callable(place) else place))
    return found


def places() -> list[str]:
    """The files and folders that are looked at before those of the environment."""
    return _added + _offered()


def manifests() -> list[dict[str, Any]]:
    """What each plugin offers."""
    found: list[dict[str, Any]] = json.loads(registry().manifests())
    return found


def pipes() -> dict[str, dict[str, Any]]:
    """Every pipe by its name: what it does, and its options."""
    global _pipes
    if not _pipes:  # Each method of a dataset looks here.
        found: dict[str, dict[str, Any]] = {}
        for manifest in manifests():
            for pipe in manifest["pipes"]:
                if not pipe["name"].endswith((".len", ".get")):
                    found.setdefault(pipe["name"], pipe)
        _pipes = found
    return _pipes
