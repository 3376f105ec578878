"""Tiny character model, gradients averaged by hand (no DDP)."""
import os
import sys
import time
from datetime import timedelta

import torch
from torch import distributed, nn

from stream import LineStream

RANK = int(os.environ["RANK"])
VOCAB = 96


def note(*words):
    print(f"<{RANK}> {time.strftime('%X')}", *words, flush=True)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, 24)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.out = nn.Linear(48, VOCAB)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def average(model):
    for p in model.parameters():
        distributed.all_reduce(p.grad)
        p.grad /= distributed.get_world_size()


def train(model):
    seen = 0
    for batch in LineStream(RANK, VOCAB):
        logits = model(batch[:, :-1])
        loss = nn.functional.cross_entropy(logits.transpose(1, 2), batch[:, 1:])
        model.zero_grad()
        loss.backward()
        average(model)
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.2 * p.grad
        seen += batch.shape[0]
        if seen % 80 == 0 and RANK == 0:
            note(f"samples {seen} loss {loss.item():.3f}")
    return seen


def main():
    distributed.init_process_group("gloo", timeout=timedelta(minutes=3))
    torch.manual_seed(0)
    seen = train(Model())
    note(f"end of shard after {seen} samples, bye")
    return 0


if __name__ == "__main__":
    sys.exit(main())
