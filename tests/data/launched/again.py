"""Fails in worker 1 before the others meet, the first time; a file named kill kills it."""

import os
import signal
import sys
import time

import torch
import torch.distributed as dist

if os.environ.get("TORCHELASTIC_RESTART_COUNT") == "0" and not os.path.exists("kill"):
    if os.environ["RANK"] == "1":
        sys.exit(3)
    # torchrun (2.13) keeps its store: started again, a worker may read an address of this start, and hang.
    time.sleep(600)
dist.init_process_group("gloo")
if dist.get_rank() == 1 and os.path.exists("kill"):
    os.kill(os.getpid(), signal.SIGKILL)
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
