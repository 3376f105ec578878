import ctypes

import numpy as np
import torch
from torch.utils.data import Dataset

_c = ctypes.CDLL(None)
_c.malloc.restype = ctypes.c_void_p
_c.free.argtypes = [ctypes.c_void_p]


class NativeTile:
    """A tile in C memory, as the satellite reader hands it out."""

    def __init__(self, edge):
        self.edge = edge
        self.pointer = _c.malloc(edge * edge * 4)
        self.offset = 0

    def array(self):
        kind = ctypes.c_float * (self.edge * self.edge)
        return np.frombuffer(kind.from_address(self.pointer), dtype=np.float32).reshape(self.edge, self.edge)

    def crop(self, rows):
        self.pointer += rows * self.edge * 4
        return self

    def release(self):
        _c.free(self.pointer)


class Tiles(Dataset):
    def __init__(self, rank, length=48, edge=32):
        self.rank, self.length, self.edge = rank, length, edge

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        tile = NativeTile(self.edge)
        tile.array()[:] = np.sin(np.arange(self.edge) * (i + 1) * 0.1)
        if self.rank == 1 and i == 29:           # the only tile that touches the swath edge
            tile.crop(3)
            tile.edge = self.edge - 3
        image = torch.from_numpy(tile.array()[:16, :16].copy())
        tile.release()
        return image.flatten(), torch.tensor(float(i % 4))
