"""Append-only history files of a column climate model; records are buffered until close()."""
import struct


class History:
    def __init__(self, path):
        self.file = open(path, "wb", buffering=1 << 20)
        self.records = 0

    def put(self, step, values):
        self.file.write(struct.pack(f"<i{len(values)}f", step, *values))
        self.records += 1

    def close(self):
        self.file.write(struct.pack("<i", -self.records))
        self.file.close()
