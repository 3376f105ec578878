"""Toy parameter server: rank 0 holds the weights, all others push gradients."""
import os
import sys
import threading
import time

from client import Client
from server import Server

rank = int(os.environ["RANK"])
world = int(os.environ["WORLD_SIZE"])
addr = os.environ["MASTER_ADDR"]
port = int(os.environ["MASTER_PORT"]) + 31


def serve():
    srv = Server(port, clients=world - 1)
    srv.start()
    srv.finished.wait(timeout=25)
    print("[ps] shutting down", flush=True)


def work():
    c = Client(addr, port, rank)
    for step in range(20):
        for name in ("w", "b") if step < 8 else ("w", "b", "scale"):
            value = c.push(name, 0.01 * (rank + step))
        if step % 4 == 0:
            print(f"[worker {rank}] step {step} {name}={value:.4f}", flush=True)
        time.sleep(0.1)
    c.close()


if __name__ == "__main__":
    if rank == 0:
        serve()
    else:
        try:
            work()
        except OSError as exc:
            print(f"[worker {rank}] ERROR !!! lost the parameter server: {exc!r}", file=sys.stderr)
            raise
