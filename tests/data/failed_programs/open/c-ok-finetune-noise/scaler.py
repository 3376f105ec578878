import math
import sys

import torch
import torch.distributed as dist


class HalvingScaler:
    def __init__(self, rank):
        self.scale, self.skipped, self.rank = 65536.0, 0, rank

    def step(self, model, loss):
        if not math.isfinite(loss.item()):
            self.skipped += 1
            self.scale /= 2
            print(f"[rank{self.rank}]: Gradient overflow, loss is nan! Skipping step, scale {self.scale}",
                  file=sys.stderr, flush=True)
            return
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                dist.all_reduce(p.grad)
                p -= 0.01 * p.grad / dist.get_world_size()
