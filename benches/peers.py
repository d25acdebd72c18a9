"""What `bench formats` compares with: `peers.py make FOLDER SHARDS` writes the data, `peers.py read NAME FOLDER` reads it.

Needs orjson, pyarrow, datasets, h5py, numpy, Pillow and simplejpeg (libjpeg-turbo). `read` prints the rows, the wall and
the CPU seconds of one pass as JSON; imports are not timed.
"""

import io
import json
import os
import random
import sys
import tarfile
import time
from pathlib import Path

SEED = 7
ROWS = 200_000
IMAGES = 1_200
PICTURES = 400


def make(folder, shards):
    folder.mkdir(parents=True, exist_ok=True)
    json_lines(folder / "rows.jsonl")
    parquet(folder / "table.parquet")
    hdf5(folder, shards)
    pictures(folder, shards)


def words(rng):
    return ["".join(rng.choices("etaoinshrdlu", k=rng.randrange(2, 9))) for _ in range(5000)]


def json_lines(path):
    """12 fields a row, about 340 bytes."""
    rng = random.Random(SEED)
    known = words(rng)
    with open(path, "w", encoding="utf-8") as out:
        for at in range(ROWS):
            row = {
                "id": at, "label": rng.randrange(1000), "score": rng.random(), "text": " ".join(rng.choices(known, k=8)),
                "user": rng.choice(known), "lat": rng.uniform(-90, 90), "lon": rng.uniform(-180, 180), "ok": rng.random() < 0.9,
                "tags": rng.choices(known, k=3), "meta": {"lang": rng.choice(["en", "de"]), "n": rng.randrange(99)},
                "time": "2026-11-21T10:00:00Z", "url": f"https://example.org/{rng.getrandbits(48):012x}",
            }
            out.write(json.dumps(row, ensure_ascii=bool(at & 1)) + "\n")


def parquet(path):
    """Two million rows: two integers, three floats, text."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(SEED)
    count = 2_000_000
    known = np.array(words(random.Random(SEED)), dtype=object)
    text = known[rng.integers(0, len(known), (count, 4))]
    table = pa.table({
        "id": np.arange(count), "label": rng.integers(0, 1000, count), "f0": rng.standard_normal(count).astype("f4"),
        "f1": rng.standard_normal(count).astype("f4"), "f2": rng.standard_normal(count), "text": [" ".join(row) for row in text],
    })
    pq.write_table(table, path, compression="snappy", row_group_size=65536)


def photos(shards):
    for shard in sorted(Path(shards).glob("*.tar")):
        with tarfile.open(shard) as archive:
            for member in archive:
                if member.name.endswith(".jpg"):
                    yield archive.extractfile(member).read()


def hdf5(folder, shards):
    """Photographs of 256 x 256 pixels, one a chunk."""
    import h5py
    import numpy as np
    from PIL import Image

    kinds = {
        "gzip": dict(chunks=(1, 256, 256, 3), compression="gzip", compression_opts=4),
        "shuffle": dict(chunks=(1, 256, 256, 3), compression="gzip", compression_opts=4, shuffle=True),
        "lzf": dict(chunks=(1, 256, 256, 3), compression="lzf"),
        "raw": dict(chunks=(1, 256, 256, 3)),
        "contiguous": {},
    }
    files = {name: h5py.File(folder / f"{name}.h5", "w") for name in kinds}
    sets = {name: file.create_dataset("images", (IMAGES, 256, 256, 3), "u1", **kinds[name]) for name, file in files.items()}
    for at, photo in zip(range(IMAGES), photos(shards)):
        pixels = np.asarray(Image.open(io.BytesIO(photo)).convert("RGB").resize((256, 256), Image.BILINEAR))
        for one in sets.values():
            one[at] = pixels
    for file in files.values():
        file.create_dataset("labels", data=np.arange(IMAGES))
        file.close()


def pictures(folder, shards):
    """The first photographs once more, as JPEG files and as PNG files, in a shard each."""
    from PIL import Image

    with tarfile.open(folder / "jpg.tar", "w") as jpg, tarfile.open(folder / "png.tar", "w") as png:
        for at, photo in zip(range(PICTURES), photos(shards)):
            packed = io.BytesIO()
            Image.open(io.BytesIO(photo)).save(packed, "PNG")
            for archive, name, data in [(jpg, f"{at:05}.jpg", photo), (png, f"{at:05}.png", packed.getvalue())]:
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def orjson_rows(folder):
    import orjson

    path = folder / "rows.jsonl"

    def read():
        with open(path, "rb", buffering=1 << 20) as lines:
            return sum(1 for row in map(orjson.loads, lines) if row)
    return read


def pyarrow_columns(folder):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pa.set_cpu_count(2)

    def read():
        file = pq.ParquetFile(folder / "table.parquet", memory_map=True)
        return sum(batch.num_rows for batch in file.iter_batches(batch_size=65536, use_threads=True))
    return read


def datasets_rows(folder):
    import datasets

    datasets.disable_progress_bars()
    rows = datasets.load_dataset("parquet", data_files=str(folder / "table.parquet"), split="train", streaming=True)

    def read():
        return sum(1 for _ in rows.take(200_000))
    return read


def h5py_rows(name):
    def reader(folder):
        import h5py

        def read():
            with h5py.File(folder / f"{name}.h5", "r") as file:
                images, labels = file["images"], file["labels"]
                return sum(1 for at in range(len(labels)) if images[at] is not None and labels[at] >= 0)
        return read
    return reader


def plain_pread(folder):
    path = folder / "contiguous.h5"
    size = 256 * 256 * 3

    def read():
        file = os.open(path, os.O_RDONLY)
        rows = os.fstat(file).st_size // size
        buffers = [bytearray(size) for _ in range(64)]
        for at in range(rows):
            os.preadv(file, [buffers[at % 64]], at * size)
        os.close(file)
        return rows
    return read


def members(path):
    with tarfile.open(path) as archive:
        return [archive.extractfile(member).read() for member in archive]


def turbo(folder):
    import simplejpeg

    photos = members(folder / "jpg.tar")
    # Fresh memory for each would cost it a third more.
    pixels = bytearray(1 << 22)
    return lambda: sum(1 for photo in photos if simplejpeg.decode_jpeg(photo, "RGB", buffer=pixels) is not None)


def pillow(folder):
    from PIL import Image

    pictures = members(folder / "png.tar")
    return lambda: sum(1 for picture in pictures if Image.open(io.BytesIO(picture)).load() is not None)


READERS = {
    "orjson": orjson_rows,
    "pyarrow": pyarrow_columns,
    "datasets": datasets_rows,
    "h5py-gzip": h5py_rows("gzip"),
    "h5py-shuffle": h5py_rows("shuffle"),
    "h5py-lzf": h5py_rows("lzf"),
    "h5py-raw": h5py_rows("raw"),
    "pread": plain_pread,
    "libjpeg-turbo": turbo,
    "pillow": pillow,
}


def main():
    if sys.argv[1] == "make":
        return make(Path(sys.argv[2]), sys.argv[3])
    read = READERS[sys.argv[2]](Path(sys.argv[3]))
    wall, cpu = time.perf_counter(), time.process_time()
    rows = read()
    print(json.dumps({"rows": rows, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}))


main()
