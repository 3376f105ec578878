from datetime import timedelta

import torch
import torch.distributed as dist

from prefetch import Prefetcher

dist.init_process_group(backend="gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)
enc, dec = torch.nn.Linear(256, 8), torch.nn.Linear(8, 256)
params = [*enc.parameters(), *dec.parameters()]
dist.barrier()
grads_group = dist.new_group(timeout=timedelta(seconds=12))

loader = Prefetcher(rank)
loader.start()
for it in range(60):
    x = loader.get()
    loss = (dec(torch.tanh(enc(x))) - x).square().mean()
    for p in params:
        p.grad = None
    loss.backward()
    flat = torch.cat([p.grad.flatten() for p in params])
    dist.all_reduce(flat, group=grads_group)
    with torch.no_grad():
        for p, g in zip(params, flat.split([q.numel() for q in params])):
            p -= 0.1 * g.view_as(p) / world
    if rank == 0 and it % 5 == 0:
        print(f"it {it:03d} | recon {loss.item():.6f}", flush=True)
dist.destroy_process_group()
