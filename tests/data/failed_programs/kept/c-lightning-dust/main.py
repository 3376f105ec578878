"""Regression of dust concentrations with Lightning; one station group per rank."""
import os
import warnings

import lightning as L
import torch
from lightning.pytorch.plugins.environments import ClusterEnvironment
from lightning.pytorch.strategies import DDPStrategy
from torch.utils.data import DataLoader

from guards import BatchGuard
from stations import Stations

warnings.filterwarnings("ignore", ".*does not have many workers.*")


class FromEnv(ClusterEnvironment):
    """RANK and friends, whatever started us."""

    creates_processes_externally = True
    main_address = property(lambda self: os.environ["MASTER_ADDR"])
    main_port = property(lambda self: int(os.environ["MASTER_PORT"]))
    detect = staticmethod(lambda: True)
    world_size = lambda self: int(os.environ["WORLD_SIZE"])
    global_rank = lambda self: int(os.environ["RANK"])
    local_rank = lambda self: 0
    node_rank = lambda self: self.global_rank()  # one process per "node" is enough on CPUs
    set_world_size = lambda self, size: None
    set_global_rank = lambda self, rank: None


class Net(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, batch, _):
        x, y = batch
        loss = torch.nn.functional.mse_loss(self.body(x).squeeze(1), y)
        self.log("loss", loss, prog_bar=True)
        return loss

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), 1e-2)


if __name__ == "__main__":
    torch.set_num_threads(1)
    rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    trainer = L.Trainer(
        max_epochs=3, accelerator="cpu", devices=1, num_nodes=world,
        strategy=DDPStrategy(process_group_backend="gloo"), plugins=[FromEnv()],
        use_distributed_sampler=False, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, callbacks=[BatchGuard()],
    )
    trainer.fit(Net(), DataLoader(Stations(rank), batch_size=16))
    print("done", rank)
