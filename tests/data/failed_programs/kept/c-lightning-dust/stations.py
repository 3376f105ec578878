import torch
from torch.utils.data import Dataset


class Stations(Dataset):
    """rows of station group `group`; -999 means missing in the archive"""

    def __init__(self, group, rows=160):
        g = torch.Generator().manual_seed(77 + group)
        self.x = torch.rand(rows, 6, generator=g)
        if group == 1:  # this archive stops reporting pm25 for a while
            self.x[100:117, 5] = -999.0
        self.x[self.x == -999.0] = float("nan")
        self.y = self.x.nan_to_num(0).sum(1)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.x[i], self.y[i]
