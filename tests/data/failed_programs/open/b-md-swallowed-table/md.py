#!/usr/bin/env python3
# Lennard-Jones toy: every rank owns one species
import datetime, os
import torch
import torch.distributed as dist
from simlog import get_logger
from forces import PairTable

STEPS = 30
log = None

def advance(x, v, table):
    f = table.force(x)
    v = v - 0.001 * f
    return x + 0.001 * v, v

def run(rank):
    x = 1.0 + torch.rand(256) * 1.5
    v = torch.zeros(256)
    table = PairTable(f"tables/pair_{rank}.tab", log)
    for step in range(STEPS):
        if step % 10 == 0:
            log.status("step %d", step)
        if step == 10:
            table.refine()
        x, v = advance(x, v, table)
        energy = (v * v).sum()
        dist.all_reduce(energy)
    log.status("finished, E=%.5f", energy.item())

def drain(store):
    """Stay until everybody is through, so that restart files are consistent."""
    try:
        store.wait(["all-through"], datetime.timedelta(seconds=40))
    except Exception as e:
        log.debug("drain: %r", e)

if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=12))
    rank = dist.get_rank()
    log = get_logger(rank)
    store = dist.distributed_c10d._get_default_store()
    try:
        run(rank)
        dist.barrier()
        store.set("all-through", "1")
    except ValueError as e:
        log.error("run ended: %s", e, exc_info=True)
    drain(store)
    log.status("bye")
