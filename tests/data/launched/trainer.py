"""Lightning's Trainer, whose sizes are options of the program."""

import argparse

import lightning
import torch
from dealt import dataset
from torch.utils.data import DataLoader
from trained import STEPS, leave, model, write


class Regression(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.net = model()

    def training_step(self, batch: list[torch.Tensor], _: int) -> torch.Tensor:
        inputs, wanted = batch
        return torch.nn.functional.mse_loss(self.net(inputs), wanted)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("digest")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--num-nodes", type=int, default=1)
    arguments = parser.parse_args()
    trainer = lightning.Trainer(
        accelerator="cpu",
        strategy="ddp",
        devices=arguments.devices,
        num_nodes=arguments.num_nodes,
        max_epochs=1,
        deterministic=True,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    regression = Regression()
    data = dataset(4 * STEPS * arguments.devices * arguments.num_nodes)
    trainer.fit(regression, DataLoader(data, batch_size=4))
    if trainer.is_global_zero:
        write(regression.parameters(), trainer.world_size, arguments.digest)
    trainer.strategy.barrier()
    leave()
