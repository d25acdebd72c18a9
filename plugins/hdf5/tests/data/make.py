"""Makes the files beside it, with h5py 3.16 (HDF5 2.0) and hdf5plugin; they are committed, so that the tests need neither."""
import os

import h5py
import hdf5plugin
import numpy as np

os.chdir(os.path.dirname(os.path.abspath(__file__)))

# Rows of every kind, in chunks of several filters: row n can be told from n alone (see tests/rows.rs).
for name, libver in (("earliest.h5", "earliest"), ("latest.h5", "latest")):
    with h5py.File(name, "w", libver=libver) as f:
        n = 23
        image = (np.arange(n * 6 * 5).reshape(n, 6, 5) % 65521).astype("<u2")
        f.create_dataset("image", data=image, chunks=(4, 6, 5), compression="gzip", shuffle=True, fletcher32=True)
        f.create_dataset("tiles", data=image, chunks=(3, 4, 2), compression="lzf")
        f.create_dataset("plain", data=image)
        f.create_dataset("big", data=image.astype(">i4"), chunks=(5, 6, 5), maxshape=(None, 6, 5))
        f.create_dataset("label", data=np.arange(n, dtype="<i8") * 3 - 7, chunks=(8,), maxshape=(None,))
        f.create_dataset("zstd", data=image, chunks=(7, 6, 5), **hdf5plugin.Zstd())
        f.create_dataset("blosc", data=image, chunks=(7, 6, 5), **hdf5plugin.Blosc(cname="blosclz", shuffle=1))
        f.create_dataset("bitshuffle", data=image, chunks=(7, 6, 5), **hdf5plugin.Bitshuffle())
        f.create_dataset("lz4", data=image, chunks=(7, 6, 5), **hdf5plugin.LZ4())
        f.create_dataset("bzip2", data=image, chunks=(7, 6, 5), **hdf5plugin.BZip2())
        f.create_dataset("truth", data=np.arange(n) % 3 == 0)
        f.create_dataset("text", data=[f"row {i} ä" for i in range(n)], dtype=h5py.string_dtype())
        f.create_dataset("fixed", data=np.array([f"r{i}" for i in range(n)], dtype="S6"))
        ragged = f.create_dataset("ragged", (n,), dtype=h5py.vlen_dtype("<f4"))
        for i in range(n):
            ragged[i] = np.arange(i % 4, dtype="<f4") + i
        record = np.zeros(n, dtype=[("id", ">u4"), ("at", "<f8", (2,)), ("name", "S4")])
        record["id"] = np.arange(n)
        record["at"] = np.arange(2 * n).reshape(n, 2) / 4
        record["name"] = [b"n%d" % i for i in range(n)]
        f.create_dataset("record", data=record, chunks=(10,))
        f.create_dataset("complex", data=np.arange(n) + 1j * np.arange(n)[::-1])
        f.create_dataset("sparse", (n, 4), dtype="<f4", chunks=(2, 4), fillvalue=1.5)
        f["sparse"][9] = 9
        f["link"] = h5py.SoftLink("/image")
        f.attrs["note"] = "a file for tests"
        f["label"].attrs["names"] = np.array([1, 2, 3], dtype="<i2")

# A sample to a group.
with h5py.File("groups.h5", "w", libver="latest") as f:
    for i in range(40):
        g = f.create_group(f"sample_{i:03}")
        g["pixels"] = np.full((i % 3 + 1, 2), i, dtype="u1")
        g["caption"] = f"picture {i}"

# Datasets that are rows together, and such as cannot be: of another length, elsewhere, by a filter that is not known.
with h5py.File("mixed.h5", "w") as f:
    f["image"] = np.arange(6 * 4 * 3, dtype="u1").reshape(6, 4, 3)
    f["label"] = np.arange(6, dtype="<i4") * 2
    f["rate"] = np.float32(0.5)
    f["note"] = "of all rows"
    f["nothing"] = h5py.Empty("<f4")
    f["names"] = np.array([b"heron", b"stork"])
    f.create_dataset("more/axis", data=np.arange(5))
    f.create_dataset("more/packed", data=np.arange(60, dtype="<f4").reshape(6, 10), chunks=(6, 10), **hdf5plugin.Zfp())
    f.create_dataset("outside", (6,), dtype="<i2", external=[("none.bin", 0, 12)])
    layout = h5py.VirtualLayout((6,), dtype="<i4")
    layout[:] = h5py.VirtualSource("mixed.h5", "label", (6,))
    f.create_virtual_dataset("virtual", layout)
    f["elsewhere"] = h5py.ExternalLink("none.h5", "/image")
    f["again"] = h5py.SoftLink("/image")

# Samples in groups beside a dataset about all of them, below a group that is alone; some lack a field.
with h5py.File("below.h5", "w", libver="latest") as f:
    for i in range(3):
        g = f.create_group(f"data/{i:04}")
        g["image"] = np.full((4, 5), i, dtype="u1")
        g["label"] = i
        if i != 1:
            g["about/note"] = f"note {i}"
    f["data/names"] = np.array([b"heron", b"stork"])

# Two cameras beside what was done: all rows, though the groups are alike.
with h5py.File("cameras.h5", "w", libver="latest") as f:
    f["action"] = np.arange(8, dtype="<f4").reshape(4, 2)
    for camera in ("left", "right"):
        f[f"{camera}/image"] = np.full((4, 2, 2), len(camera), dtype="u1")

# So many rows that those of one read would take hundreds of MB as samples, and none was written.
with h5py.File("many.h5", "w") as f:
    f.create_dataset("x", (4_000_000_000,), dtype="u1")

# Chunks of so many rows that each is cut over several pieces: whole rows, and parts of them.
with h5py.File("tall.h5", "w") as f:
    n = 250_000
    pair = np.stack([np.arange(n) % 251, np.arange(n) % 7], axis=1).astype("<u2")
    f.create_dataset("pair", data=pair, chunks=(120_000, 2), compression="gzip", compression_opts=9, shuffle=True)
    f.create_dataset("half", data=pair.astype("u1"), chunks=(120_000, 1), compression="gzip", compression_opts=9)

# Groups that are large in memory, and not in the file: nothing was written.
with h5py.File("wide.h5", "w", libver="latest") as f:
    for i in range(6):
        f.create_group(f"sample_{i}").create_dataset("x", (1000, 2000), dtype="u1")
