"""Forebay loaders in the ``Trainer`` of transformers."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from transformers import TrainerCallback
from transformers.trainer_utils import get_last_checkpoint

FILE = "forebay.json"


class TrainerMixin:
    """Trains on a Forebay loader, and saves its state with each checkpoint.

    Put it before ``Trainer``: ``class MyTrainer(TrainerMixin, Trainer)``. Pass ``train_loader=``, a
    :class:`forebay.Loader` with ``output="torch"`` or a :class:`forebay.torch.DataLoader`.
    ``train(resume_from_checkpoint=...)`` goes on behind the last batch of the checkpoint, and reads nothing again.
    """

    def __init__(self, *args: Any, train_loader: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        trainer: Any = self
        trainer.args.ignore_data_skip = True  # The loader begins where it must.
        self.train_loader = train_loader
        trainer.add_callback(SaveLoader(train_loader))

    def get_train_dataloader(self) -> Any:
        """The loader. transformers neither wraps it nor shards it, because the loader knows its ranks."""
        return self.train_loader

    def train(self, resume_from_checkpoint: Any = None, *args: Any, **kwargs: Any) -> Any:
        """As ``Trainer.train``."""
        trainer: Any = super()
        checkpoint = resume_from_checkpoint
        if checkpoint is True:
            own: Any = self
            checkpoint = get_last_checkpoint(own.args.output_dir)
        if checkpoint:
            load(self.train_loader, checkpoint)
        return trainer.train(resume_from_checkpoint, *args, **kwargs)


class SaveLoader(TrainerCallback):  # type: ignore[misc]
    """Writes the state of a loader into each checkpoint, for a ``Trainer`` without the mixin. :func:`load` reads it."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / FILE).write_text(json.dumps(self.loader.state_dict()), encoding="utf-8")


def load(loader: Any, checkpoint: str | os.PathLike[str]) -> None:
    """Makes a loader go on from this checkpoint."""
    loader.load_state_dict(json.loads((Path(checkpoint) / FILE).read_text(encoding="utf-8")))
