"""Makes the shards of this folder: crops of five photographs, as WebDataset tar files of jpg + json + cls.

    pip download scikit-image==0.26.0 --no-deps && unzip -q scikit_image-*.whl 'skimage/data/*'
    pip install pillow==13.0.0
    python examples/photos/make.py skimage/data examples/photos

One Pillow version always writes the same bytes: every choice is drawn from `random.Random(SEED).random()`, and
the tar headers hold no time, owner or host.
"""

import io
import json
import random
import sys
import tarfile
from pathlib import Path

from PIL import Image

SEED = 7
SHARDS = 6
SAMPLES_PER_SHARD = 33
# The place in this list is the label.
SOURCES = ["chelsea.png", "coffee.png", "rocket.jpg", "retina.jpg", "brick.png"]
SIZES = [(240, 180), (256, 192), (320, 240), (240, 320), (375, 281), (500, 375)]
SIZE_WEIGHTS = [12, 8, 6, 2, 2, 1]
QUALITIES = [85, 86, 87, 88, 90]
# Every 17th sample is stored turned or mirrored and says so in EXIF, the orientations 2 to 8 in turn.
ORIENTED_EVERY = 17
EXIF_ORIENTATION = 0x0112
# The change of the stored pixels that a reader's correction of that orientation takes back.
STORE_AS = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


def below(rng, n):
    """A whole number in 0..n, from the one method of Random whose sequence Python promises to keep."""
    return int(rng.random() * n)


def pick(rng, choices, weights=None):
    weights = weights or [1] * len(choices)
    place = below(rng, sum(weights))
    for choice, weight in zip(choices, weights):
        if place < weight:
            return choice
        place -= weight
    raise AssertionError("the weights cover every place")


def crop(rng, photo, size):
    """A window of the shape of `size`, 60 to 100 % of the largest that fits, and its box in the photograph."""
    scale = min(photo.width / size[0], photo.height / size[1]) * (0.6 + 0.4 * rng.random())
    width, height = int(size[0] * scale), int(size[1] * scale)
    left, top = below(rng, photo.width - width + 1), below(rng, photo.height - height + 1)
    box = (left, top, left + width, top + height)
    return photo.resize(size, Image.Resampling.BICUBIC, box=box), box


def jpeg(rng, picture, orientation):
    exif = Image.Exif()
    if orientation != 1:
        picture = picture.transpose(STORE_AS[orientation])
        exif[EXIF_ORIENTATION] = orientation
    out = io.BytesIO()
    picture.save(out, "JPEG", quality=pick(rng, QUALITIES), optimize=True, exif=exif.tobytes() if len(exif) else b"")
    return out.getvalue()


def sample(rng, number, photos):
    """The three members of one sample, in the order in which they are stored."""
    label = below(rng, len(SOURCES))
    size = pick(rng, SIZES, SIZE_WEIGHTS)
    picture, box = crop(rng, photos[label], size)
    orientation = 2 + number // ORIENTED_EVERY % 7 if number % ORIENTED_EVERY == ORIENTED_EVERY - 1 else 1
    about = {"source": SOURCES[label], "box": list(box), "width": size[0], "height": size[1], "label": label}
    return [
        ("jpg", jpeg(rng, picture, orientation)),
        ("json", json.dumps(about).encode()),
        ("cls", str(label).encode()),
    ]


def main(data, out):
    opened = [Image.open(Path(data) / name) for name in SOURCES]
    photos = [photo.convert("L" if photo.mode == "L" else "RGB") for photo in opened]
    rng = random.Random(SEED)
    for shard in range(SHARDS):
        path = Path(out) / f"photos-{shard:06}.tar"
        with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
            for number in range(shard * SAMPLES_PER_SHARD, (shard + 1) * SAMPLES_PER_SHARD):
                for extension, content in sample(rng, number, photos):
                    member = tarfile.TarInfo(f"{number:06}.{extension}")
                    member.size = len(content)
                    tar.addfile(member, io.BytesIO(content))
        print(path, path.stat().st_size)


if __name__ == "__main__":
    main(*sys.argv[1:])
