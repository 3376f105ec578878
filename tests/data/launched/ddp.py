"""Data parallel with gloo, a sampler that deals the data out, and ranks from torchrun."""

import torch
import torch.distributed as dist
from dealt import dataset
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
from trained import STEPS, leave, model, write

dist.init_process_group("gloo")
net = DistributedDataParallel(model())
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
data = dataset(4 * STEPS * dist.get_world_size())
for inputs, wanted in DataLoader(data, batch_size=4, sampler=DistributedSampler(data, shuffle=True, seed=3)):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(net(inputs), wanted).backward()
    optimizer.step()
if dist.get_rank() == 0:
    write(net.module.parameters(), dist.get_world_size())
dist.destroy_process_group()
leave()
