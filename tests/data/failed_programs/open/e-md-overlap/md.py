from mpi4py import MPI
import sys, time
import numpy as np
from slab import read_xyz, lj

world = MPI.COMM_WORLD
me = world.rank
DT = 0.002

def error_all(msg, code):
    sys.stderr.write("ERROR on proc %d: %s\n" % (me, msg))
    sys.stderr.flush()
    time.sleep(0.5)
    world.Abort(code)

pos = read_xyz("slab_%d.xyz" % me)
vel = np.zeros_like(pos)
if me == 0:
    print("Step   PotEng      KinEng", flush=True)
    print("WARNING: Communication cutoff adjusted to 2.8", file=sys.stderr, flush=True)

for step in range(0, 41):
    pe, frc = lj(pos)
    if not np.isfinite(pe):
        error_all("Non-numeric potential energy at step %d, atoms %s - simulation unstable"
                  % (step, np.unique(np.argwhere(~np.isfinite(frc))[:, 0]).tolist()), 13)
    frc = np.clip(frc, -50, 50)
    vel += DT * frc
    pos += DT * vel
    ke = 0.5 * (vel ** 2).sum()
    tot = world.allreduce(np.array([pe, ke]))
    if me == 0 and step % 10 == 0:
        print("%4d %10.4f %10.4f" % (step, tot[0], tot[1]), flush=True)

if me == 0:
    print("Total wall time: ok")
