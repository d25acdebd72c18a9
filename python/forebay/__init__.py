"""Data loading for machine learning: the same samples however they are read.

>>> import forebay as fb
>>> [batch["value"].tolist() for batch in fb.range(4).batch(2).loader(executor="inline")]
[[0, 1], [2, 3]]
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forebay import plugins
from forebay._audit import Audit, EpochAudit, audit
from forebay._dataset import Dataset
from forebay._errors import (
    AbiError,
    Bug,
    Cancelled,
    CorruptError,
    ForebayError,
    InvalidError,
    IoError,
    LimitError,
    PluginPanic,
    UnsupportedError,
    WorkerDied,
)
from forebay._explain import Explanation
from forebay._lints import Lint, LintWarning
from forebay._loader import Batch, Epoch, Loader
from forebay._native import Array, Columns
from forebay._sources import (
    files,
    from_arrow,
    from_indexed,
    from_iterable,
    from_list,
    image_folder,
    open,
)
from forebay._sources import __getattr__ as __getattr__
from forebay._stats import Stats

if TYPE_CHECKING:
    from forebay._pipes import *  # noqa: F403

__all__ = [
    "AbiError",
    "Array",
    "Audit",
    "Batch",
    "Bug",
    "Cancelled",
    "Columns",
    "CorruptError",
    "Dataset",
    "Epoch",
    "EpochAudit",
    "Explanation",
    "ForebayError",
    "InvalidError",
    "IoError",
    "LimitError",
    "Lint",
    "LintWarning",
    "Loader",
    "PluginPanic",
    "Stats",
    "UnsupportedError",
    "WorkerDied",
    "audit",
    "files",
    "from_arrow",
    "from_indexed",
    "from_iterable",
    "from_list",
    "image_folder",
    "open",
    "plugins",
]
