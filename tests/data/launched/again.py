"""Fails in worker 1 before it meets the others, the first time; a file named kill kills it."""

import os
import signal
import sys

import torch
import torch.distributed as dist

first = os.environ["RANK"] == "1" and os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0"
if first and not os.path.exists("kill"):
    sys.exit(3)
dist.init_process_group("gloo")
if dist.get_rank() == 1 and os.path.exists("kill"):
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
