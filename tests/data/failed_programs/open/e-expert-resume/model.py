import torch.nn as nn


class Gate(nn.Module):
    def __init__(self, d=24, n=4):
        super().__init__()
        self.proj = nn.Linear(d, n)

    def forward(self, x):
        return self.proj(x).softmax(-1)


class Expert(nn.Module):
    """One expert lives on each rank and is never averaged."""

    def __init__(self, d=24, hidden=64):
        super().__init__()
        self.up = nn.Linear(d, hidden)
        self.down = nn.Linear(hidden, d)

    def forward(self, x):
        return x + self.down(self.up(x).relu())
