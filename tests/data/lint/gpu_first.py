"""A rank that takes its first GPU, and prints its number on its node."""

import os

import torch

local_rank = int(os.environ["SLURM_LOCALID"])
print(f"cuda:{local_rank} of the node")
local_rank = 0
torch.cuda.set_device(local_rank)
