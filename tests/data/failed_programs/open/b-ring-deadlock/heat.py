"""2-D heat equation on a ring of slabs, blocking point-to-point messages."""
import datetime
import sys
import torch
import torch.distributed as dist
import exchange

NX, NY, NSTEP = 64, 32, 50


class Slab:
    def __init__(self, rank):
        self.u = torch.zeros(NY + 2, NX)
        self.u[1:-1] = float(rank)

    def relax(self):
        u = self.u
        c = u[1:-1, 1:-1]
        c += 0.2 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * c)


def main(argv):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=10))
    slab = Slab(dist.get_rank())
    for n in range(NSTEP):
        exchange.halo(slab)
        if n and n % 20 == 0:
            exchange.rotate_checkpoint(slab)
            if dist.get_rank() == 0:
                print("checkpoint copies rotated at step", n)
        slab.relax()
        if n % 10 == 0 and dist.get_rank() == 0:
            print(f"n={n:3d} max={slab.u.max():.4f}", flush=True)
    dist.destroy_process_group()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
