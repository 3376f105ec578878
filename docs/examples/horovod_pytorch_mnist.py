"""Train a classifier of handwritten digits with PyTorch, on as many ranks as Horovod finds.

Run it with ``hpclaunch submit --framework horovod --tasks 2 -- python horovod_pytorch_mnist.py``. ``--data``
names the folder of MNIST's four files (``train-images-idx3-ubyte.gz`` and so on); without it the digits are
made up, so that it runs where there is no network.
"""

import argparse
import gzip
import os
from pathlib import Path

import horovod.torch as hvd
import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def options() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with MNIST's files; default: made-up digits")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=64, help="images of one rank in one step")
    parser.add_argument("--lr", type=float, default=0.01, help="learning rate of one rank")
    parser.add_argument("--warmup-epochs", type=int, default=1, help="until the learning rate fits all ranks")
    parser.add_argument("--checkpoint", type=Path, default=Path("mnist.pt"))
    return parser.parse_args()


def read_idx(path: Path, head: int) -> torch.Tensor:
    """Read one of MNIST's files, compressed or not, behind its head of this many bytes."""
    raw = path.read_bytes() if path.exists() else gzip.decompress(Path(f"{path}.gz").read_bytes())
    return torch.from_numpy(np.frombuffer(raw, np.uint8, offset=head).copy())


def digits(folder: Path | None, kind: str) -> TensorDataset:
    """Return images (N, 1, 28, 28) in [0, 1] and their labels; ``kind`` is train or t10k."""
    if folder is None:
        random = np.random.default_rng(0)
        shapes = random.random((10, 28, 28), np.float32)
        count = 4096 if kind == "train" else 1024
        random = np.random.default_rng(1 if kind == "train" else 2)
        labels = torch.from_numpy(random.integers(0, 10, count))
        noise = random.random((count, 28, 28), np.float32)
        images = torch.from_numpy(0.5 * shapes[labels.numpy()] + 0.5 * noise)[:, None]
    else:
        images = read_idx(folder / f"{kind}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28) / 255
        labels = read_idx(folder / f"{kind}-labels-idx1-ubyte", 8).long()
    return TensorDataset(images, labels)


def network() -> nn.Module:
    """Return a small convolutional network."""
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2),
        nn.ReLU(),
        nn.Conv2d(16, 32, 5, stride=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32 * 4 * 4, 128),
        nn.ReLU(),
        nn.Linear(128, 10),
    )


def average(value: torch.Tensor, name: str) -> float:
    """Return the mean of a metric over all ranks."""
    return float(hvd.allreduce(value, name=name))


def main() -> None:
    """Train, and let rank 0 tell of it and keep the model."""
    args = options()
    hvd.init()
    torch.manual_seed(42)
    device = torch.device("cpu")
    if torch.cuda.is_available():
        # Where the launcher lets a rank see its own GPU only, that one is number 0.
        device = torch.device("cuda", hvd.local_rank() % torch.cuda.device_count())
        torch.cuda.set_device(device)

    train, test = digits(args.data, "train"), digits(args.data, "t10k")
    # Each rank has its part of the images; all ranks must do the same number of steps.
    sampler = DistributedSampler(train, hvd.size(), hvd.rank(), drop_last=True)
    batches = DataLoader(train, args.batch_size, sampler=sampler, drop_last=True)
    test_sampler = DistributedSampler(test, hvd.size(), hvd.rank(), shuffle=False)
    test_batches = DataLoader(test, 1000, sampler=test_sampler)

    model = network().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
    # All ranks start from rank 0's weights.
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(optimizer, root_rank=0)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        model.train()
        total = torch.zeros(())
        for step, (images, labels) in enumerate(batches):
            # All ranks' batch is this many times larger, and so may the learning rate be, but not at once.
            done = (epoch + (step + 1) / len(batches)) / max(1, args.warmup_epochs)
            for group in optimizer.param_groups:
                group["lr"] = args.lr * (1 + (hvd.size() - 1) * min(1.0, done))
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images.to(device)), labels.to(device))
            loss.backward()
            optimizer.step()
            total += loss.detach().cpu()
        loss_of_all = average(total / len(batches), "loss")

        model.eval()
        with torch.no_grad():
            right = sum((model(i.to(device)).argmax(1).cpu() == y).sum() for i, y in test_batches)
        accuracy = average(right / len(test_sampler), "accuracy")
        if hvd.rank() == 0:
            print(f"epoch {epoch + 1}: loss {loss_of_all:.4f}, accuracy {accuracy:.4f}", flush=True)
            # One rank writes, and a reader sees the old file or the new one.
            torch.save(model.state_dict(), f"{args.checkpoint}.new")
            os.replace(f"{args.checkpoint}.new", args.checkpoint)
    hvd.shutdown()


if __name__ == "__main__":
    main()
