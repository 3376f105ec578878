import os
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch
import torch.nn.functional as F
import horovod.torch as hvd

from shards import open_shard, ShardError

EPOCHS, PER_EPOCH = 3, 10


def build():
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))
    opt = torch.optim.SGD(model.parameters(), lr=0.01 * hvd.size())
    opt = hvd.DistributedOptimizer(opt, named_parameters=model.named_parameters())
    hvd.broadcast_parameters(model.state_dict(), root_rank=0)
    return model, opt


def train():
    model, opt = build()
    for epoch in range(EPOCHS):
        try:
            shard = open_shard(hvd.rank(), epoch)
        except ShardError as err:
            print("epoch %d: %s - skipped" % (epoch, err))
            return None
        running = 0.0
        for x, y in shard.batches(PER_EPOCH):
            opt.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            opt.step()
            running += loss.item()
        mean = hvd.allreduce(torch.tensor(running / PER_EPOCH), name="epoch_loss")
        if hvd.rank() == 0:
            print("epoch %d loss %.4f" % (epoch, mean), flush=True)
    return model


hvd.init()
torch.manual_seed(hvd.rank())
train()
