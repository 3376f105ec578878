"""A rank that takes the GPU with its number on its node, of those that it sees."""

import os

import torch

local_id = int(os.environ["SLURM_LOCALID"]) % torch.cuda.device_count()
torch.cuda.set_device(local_id)
