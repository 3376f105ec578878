"""Print the version of torch and the GPUs that it sees, as JSON."""

from __future__ import annotations

import json

import torch

print(
    json.dumps(
        {
            "version": torch.__version__,
            "cuda": torch.version.cuda,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())) if torch.cuda.is_available() else None,
            "gpus": torch.cuda.device_count() if torch.cuda.is_available() else 0,
        }
    )
)
