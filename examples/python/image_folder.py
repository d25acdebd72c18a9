"""Pictures in a folder for each class: random crops to train on, the middle of each to validate with.

    python examples/python/image_folder.py FOLDER

Without a folder it makes one of the photographs in examples/photos.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import forebay as fb

PHOTOS = Path(__file__).parents[1] / "photos"


def make_folder(root: Path) -> None:
    """Photographs by their labels."""
    for sample in fb.files(f"{PHOTOS}/*.tar").untar().loader(executor="inline"):
        folder = root / f"class {int(bytes(sample['cls']))}"
        folder.mkdir(exist_ok=True)
        (folder / f"{sample.uid:x}.jpg").write_bytes(sample["jpg"])


def main(folder: Path) -> None:
    train = fb.image_folder(folder, shuffle=True).random_resized_crop(64).decode().flip().normalize().batch(16)
    valid = fb.image_folder(folder).resize(72).center_crop(64).decode().normalize().batch(16)
    with train.loader(num_workers=2, epochs=2, seed=7, output="numpy") as loader:
        for epoch in loader.epochs():
            shapes = {batch["image"].shape[1:] for batch in epoch}
            print(f"epoch {epoch.epoch}: {len(loader)} batches of {shapes}")
    seen = sum(len(batch["label"]) for batch in valid.loader(num_workers=2, output="numpy"))
    print(f"{seen} pictures to validate with, in the order of their names")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as made:
            make_folder(Path(made))
            main(Path(made))
