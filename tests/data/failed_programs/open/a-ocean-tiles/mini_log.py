"""Quiet by design: the terminal belongs to rank 0, each rank has a file."""
import logging
import os


def get(rank, folder="log"):
    os.makedirs(folder, exist_ok=True)
    log = logging.getLogger("ocean")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    handler = logging.FileHandler(f"{folder}/ocean.{rank:04d}.log", mode="w")
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)-8s %(message)s"))
    log.addHandler(handler)
    if rank == 0:
        log.addHandler(logging.StreamHandler())
    return log
