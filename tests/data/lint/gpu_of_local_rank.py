"""A rank that takes the GPU with its number on its node."""

import os

import torch

rank, local_rank = int(os.environ["SLURM_PROCID"]), 0
local_id = int(os.environ.get("SLURM_LOCALID", 0))
device = torch.device(f"cuda:{local_id}")
model = torch.nn.Linear(2, 2).to(device)
