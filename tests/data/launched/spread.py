"""An actor on each node of a Ray cluster computes gradients, which the driver averages."""

import ray
import torch
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
from trained import STEPS, batch, model, write


@ray.remote(num_cpus=1)
class Worker:
    """Has the data of one rank."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.net = model()

    def node(self) -> str:
        return ray.util.get_node_ip_address()

    def gradients(self, step: int, parameters: list[torch.Tensor]) -> list[torch.Tensor]:
        inputs, wanted = batch(step, self.rank)
        for mine, newest in zip(self.net.parameters(), parameters, strict=True):
            mine.data = newest.clone()
        loss = torch.nn.functional.mse_loss(self.net(inputs), wanted)
        return list(torch.autograd.grad(loss, list(self.net.parameters())))


ray.init()
nodes = sorted(node["NodeManagerAddress"] for node in ray.nodes() if node["Alive"])
group = placement_group([{"CPU": 1}] * len(nodes), strategy="STRICT_SPREAD")
ray.get(group.ready())
places = [PlacementGroupSchedulingStrategy(group, index) for index in range(len(nodes))]
workers = [Worker.options(scheduling_strategy=place).remote(rank) for rank, place in enumerate(places)]
assert sorted(ray.get([worker.node.remote() for worker in workers])) == nodes
net = model()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(STEPS):
    parameters = ray.put([each.detach() for each in net.parameters()])
    found = ray.get([worker.gradients.remote(step, parameters) for worker in workers])
    for each, gradients in zip(net.parameters(), zip(*found, strict=True), strict=True):
        each.grad = torch.stack(gradients).mean(dim=0)
    optimizer.step()
print("nodes:", *nodes)
write(net.parameters(), len(workers))
ray.shutdown()
