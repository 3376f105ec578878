"""A model on the GPUs of one node."""

import torch

model = torch.nn.DataParallel(torch.nn.Linear(2, 2))
