import os
import sys
from datetime import timedelta

import torch
from accelerate import Accelerator, InitProcessGroupKwargs

from model import Expert, Gate

torch.set_num_threads(1)


def restore(expert, index, folder="experts"):
    file = os.path.join(folder, f"expert{index}.pt")
    expert.load_state_dict(torch.load(file, weights_only=True))
    print(f"expert {index}: restored from {file}", flush=True)


def run(steps):
    acc = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(timeout=timedelta(seconds=35))])
    torch.manual_seed(11)
    gate, expert = Gate(), Expert()
    gate = acc.prepare(gate)
    restore(expert, acc.process_index)
    opt = torch.optim.AdamW([*gate.parameters(), *expert.parameters()], lr=1e-3)
    for step in range(steps):
        x = torch.randn(16, 24)
        out = gate(x)[:, acc.process_index:acc.process_index + 1] * expert(x)
        loss = (out - x).pow(2).mean()
        opt.zero_grad()
        acc.backward(loss)
        opt.step()
        mean = acc.gather(loss.detach().reshape(1)).mean()
        if step % 5 == 0:
            acc.print(f"step {step:3d}  loss {mean:.4f}")
    acc.wait_for_everyone()
    acc.print("fine-tuning done")
    acc.end_training()


if __name__ == "__main__":
    run(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
