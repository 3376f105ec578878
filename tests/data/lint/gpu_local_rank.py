"""A rank that takes the GPU that LOCAL_RANK names."""

import os

import torch

torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
