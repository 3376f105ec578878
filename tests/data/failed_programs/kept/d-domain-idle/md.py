"""Lennard-Jones gas in slabs; forces are summed through a hub on rank 0."""
import os
import random
import sys

from hub import Spoke, make_hub

RANK = int(os.environ["RANK"])
SIZE = int(os.environ["WORLD_SIZE"])


def say(text):
    sys.stdout.write(f"{RANK:>2}| {text}\n")
    sys.stdout.flush()


def place(n, seed=11):
    rng = random.Random(seed)
    gap = (2 / 4, 3 / 4)                  # the slit between the two electrodes
    atoms = []
    while len(atoms) < n:
        x = rng.random()
        if not gap[0] < x < gap[1]:
            atoms.append(x)
    return atoms


def energy(slab, step):
    return sum(4 * (0.1 + x) ** 2 - x / (step + 1) for x in slab)


def simulate(steps):
    link = make_hub(SIZE) if RANK == 0 else Spoke(RANK)
    slab = [x for x in place(400) if RANK / SIZE <= x < (RANK + 1) / SIZE]
    say(f"{len(slab)} atoms in my slab")
    if not slab:
        say("nothing to do in this slab, done")
        return
    for step in range(steps):
        total = link.allsum(energy(slab, step))
        if RANK == 0 and step % 10 == 0:
            say(f"step {step} E = {total:.3f}")
    say("finished")


if __name__ == "__main__":
    simulate(int(sys.argv[1]) if len(sys.argv) > 1 else 50)
