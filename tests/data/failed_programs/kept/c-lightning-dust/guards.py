import torch
from lightning.pytorch import Callback


class BadBatch(ArithmeticError):
    def __init__(self, batch_idx, column, count):
        super().__init__(f"batch {batch_idx}: {count} NaN in column '{column}', refusing to train on it")


class BatchGuard(Callback):
    NAMES = ["t2m", "rh", "u10", "v10", "pm10", "pm25"]

    def on_train_batch_start(self, trainer, module, batch, batch_idx):
        x, _ = batch
        bad = torch.isnan(x).sum(0)
        if bad.any():
            c = int(bad.argmax())
            raise BadBatch(batch_idx, self.NAMES[c], int(bad[c]))
