"""FSDP2 with gloo, as torch's tutorial on fully_shard has it."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from trained import STEPS, batch, leave, model, write

dist.init_process_group("gloo")
rank, workers = dist.get_rank(), dist.get_world_size()
net = model()
mesh = init_device_mesh("cpu", (workers,))
for layer in (net[0], net[2]):
    fully_shard(layer, mesh=mesh)
fully_shard(net, mesh=mesh)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(STEPS):
    inputs, wanted = batch(step, rank)
    torch.nn.functional.mse_loss(net(inputs), wanted).backward()
    optimizer.step()
    optimizer.zero_grad()
whole = [each.full_tensor() for each in net.parameters()]
if rank == 0:
    write(whole, workers)
dist.destroy_process_group()
leave()
