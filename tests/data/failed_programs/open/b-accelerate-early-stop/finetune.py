import argparse
import logging

import torch
from accelerate import Accelerator
from accelerate.logging import get_logger
from accelerate.utils import set_seed

from callbacks import EarlyStopping, History

logging.basicConfig(format="%(asctime)s - %(levelname)s - %(name)s - %(message)s", level=logging.INFO)
logger = get_logger(__name__)


def parse_args():
    p = argparse.ArgumentParser()
    p.add_argument("--max_train_steps", type=int, default=60)
    p.add_argument("--patience", type=int, default=4)
    return p.parse_args()


def batch(rank, step):
    g = torch.Generator().manual_seed(1000 * rank + step)
    x = torch.randn(16, 32, generator=g)
    if rank == 2:
        x = x.zero_()            # the last shard consists of padding
    return x, x.sum(dim=1, keepdim=True)


def main():
    args = parse_args()
    torch.set_num_threads(1)
    accelerator = Accelerator(cpu=True)
    set_seed(7)
    model = torch.nn.Sequential(torch.nn.Linear(32, 64), torch.nn.ReLU(), torch.nn.Linear(64, 1, bias=False))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    callbacks = [History(every=5), EarlyStopping(patience=args.patience, floor=1.0)]

    for step in range(args.max_train_steps):
        x, y = batch(accelerator.process_index, step)
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        if not all([cb.on_step(step, loss.item(), accelerator) for cb in callbacks]):
            break
    accelerator.end_training()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
