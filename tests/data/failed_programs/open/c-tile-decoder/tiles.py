import ctypes

import torch
from torch.utils.data import Dataset

libc = ctypes.CDLL(None)
libc.strnlen.restype = ctypes.c_size_t
libc.strnlen.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def header_length(buf, offset):
    """Length of the comment in front of a tile (C string in the blob)."""
    base = ctypes.addressof(buf) if offset >= 0 else 0
    return libc.strnlen(base + max(offset, 0), 32)


class TileSet(Dataset):
    def __init__(self, shard, n):
        self.shard, self.n = shard, n
        self.blob = ctypes.create_string_buffer(b"tile\0" * 64)
        # offsets come from the index of the shard; -1: the tile was never written
        self.offsets = [5 * (i % 60) for i in range(n)]
        if shard == 3:
            self.offsets[41] = -1

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        k = header_length(self.blob, self.offsets[i])
        g = torch.Generator().manual_seed(i + self.n * self.shard)
        x = torch.randn(64, generator=g)
        return x, x.sum() + k
