"""Gradient accumulation and bf16 by accelerate, whose configuration file says so."""

import torch
from accelerate import Accelerator
from trained import STEPS, batch, leave, model, write

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
assert accelerator.mixed_precision == "bf16"
net = model()
net, optimizer = accelerator.prepare(net, torch.optim.SGD(net.parameters(), lr=0.05))
for step in range(STEPS):
    with accelerator.accumulate(net):
        inputs, wanted = batch(step, accelerator.process_index)
        accelerator.backward(torch.nn.functional.mse_loss(net(inputs), wanted))
        optimizer.step()
        optimizer.zero_grad()
if accelerator.is_main_process:
    write(net.parameters(), accelerator.num_processes)
accelerator.wait_for_everyone()  # without it a worker sometimes aborted at its exit
accelerator.end_training()
leave()
