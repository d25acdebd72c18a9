"""Writes sample.nii: 4 x 3 x 2 voxels of int16, numbered as they lie in the file, 1 x 1 x 2.5 mm each."""
import struct

header = bytearray(352)
struct.pack_into("<i", header, 0, 348)
struct.pack_into("<8h", header, 40, 3, 4, 3, 2, 1, 1, 1, 1)
struct.pack_into("<hh", header, 70, 4, 16)
struct.pack_into("<8f", header, 76, 1, 1, 1, 2.5, 0, 0, 0, 0)
struct.pack_into("<fff", header, 108, 352, 2, 10)
header[344:348] = b"n+1\0"
with open("sample.nii", "wb") as file:
    file.write(header + struct.pack("<24h", *range(24)))
