import configparser
from pathlib import Path

import numpy as np
from mpi4py import MPI


class Settings:
    def __init__(self, folder, rank):
        cp = configparser.ConfigParser()
        cp.read([folder / "stencil.ini", folder / f"stencil.{rank}.ini"])
        self.halo = cp.getint("grid", "halo")
        self.nx = cp.getint("grid", "nx")
        self.sweeps = cp.getint("run", "sweeps")


class Field:
    def __init__(self, comm, s):
        self.comm, self.w = comm, s.halo
        self.a = np.random.default_rng(comm.rank).random((s.nx + 2 * s.halo, s.nx))

    def refresh(self):
        left, right = (self.comm.rank - 1) % self.comm.size, (self.comm.rank + 1) % self.comm.size
        w = self.w
        buf = np.empty((w, self.a.shape[1]))
        self.comm.Sendrecv(np.ascontiguousarray(self.a[w:2 * w]), left, 5, buf, right, 5)
        self.a[-w:] = buf
        self.comm.Sendrecv(np.ascontiguousarray(self.a[-2 * w:-w]), right, 6, buf, left, 6)
        self.a[:w] = buf

    def smooth(self):
        self.refresh()
        self.a[1:-1] = (self.a[:-2] + self.a[1:-1] + self.a[2:]) / 3


def main():
    comm = MPI.COMM_WORLD
    s = Settings(Path(__file__).parent, comm.rank)
    print(f"<{comm.rank}> nx={s.nx} halo={s.halo}", flush=True)
    f = Field(comm, s)
    for k in range(s.sweeps):
        f.smooth()
    total = comm.reduce(float(f.a.sum()))
    if comm.rank == 0:
        print(f"<0> sum after {s.sweeps} sweeps: {total:.4f}")


if __name__ == "__main__":
    main()
