"""Memory and step time of public networks on one GPU, predicted and measured: ``benchmarks/one_gpu.py``.

    python -m benchmarks.one_gpu --predict --python VENV/bin/python        # writes predictions before any run
    python benchmarks/gpu_parts/trainings.py tests/data/scaling/one_gpu.json > measured.json   # on a GPU
    python -m benchmarks.one_gpu --add measured.json
    python -m benchmarks.one_gpu                                           # the table

Each network is traced by ``predict --from-torch``, as a person's own would be, and predicted with the options
that say how it is trained: ``pure`` bf16, ``fp32``, or ``autocast`` to bf16. The allocator's peak is compared
with the prediction without its reserve, what the allocator holds and CUDA takes with all of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "data" / "scaling" / "one_gpu.json"
OPTIONS = {
    "pure": ("--precision", "bf16", "--copies", "pure"),
    "fp32": (),
    "autocast": ("--precision", "bf16"),
}
SITE = "mn5-acc"
"""A site with H100 SXM5 of data sheet; nothing else of it has part in one GPU."""
SETUPS = (
    *("gpt2 32 pure", "gpt2_medium 16 pure", "gpt2_xl 4 pure", "llama_1b 4 pure", "llama_8_of_32 2 pure"),
    *("qwen2 4 pure", "pythia 8 pure", "opt 8 pure", "bloom 8 pure", "bert_large 32 pure", "roberta 64 pure"),
    *("t5 32 pure", "vit_base 256 pure", "vit_large 128 pure", "swin 128 pure", "convnext 128 pure"),
    *("resnet50 256 pure", "gpt2 16 fp32", "bert_large 32 fp32", "llama_1b 2 fp32", "vit_base 128 fp32"),
    *("resnet50 256 fp32", "gpt2 32 autocast", "bert_large 32 autocast", "llama_1b 4 autocast"),
    *("vit_base 256 autocast", "resnet50 256 autocast", "opt 4 autocast"),
)
"""Function of gpu_parts/trainings.py, samples of a step, and how it is trained."""


def hpclaunch(*words: str) -> str:
    """Return what a command prints."""
    command = [sys.executable, "-m", "hpclaunch", *words]
    folder = ROOT / "benchmarks" / "gpu_parts"
    return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, text=True, check=True).stdout


def predictions(python: str) -> list[dict[str, Any]]:
    """Return all set-ups with what is predicted of them."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for setup in SETUPS:
            name, batch, mode = setup.split()
            table = Path(folder) / f"{name}.yaml"
            if not table.exists():
                table.write_text(
                    hpclaunch("predict", "--from-torch", f"trainings:{name}", "--python", python)
                )
            asked = ("--site", SITE, "--model", str(table), "--batch-per-worker", batch, "--gpus", "1")
            how = ("--strategy", "data", "--optimizer", "adam", *OPTIONS[mode], "--json")
            (point,) = json.loads(hpclaunch("predict", *asked, *how))["points"]
            predicted = {key: point[key] for key in ("memory_gib", "memory", "step_s")}
            row = {"name": setup, "factory": name, "batch": int(batch), "mode": mode}
            found.append({**row, "predicted": predicted})
    return found
