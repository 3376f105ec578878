"""Fault injection for the resilience study (bit flips, lost messages, simulated rank death)."""
import sys
import traceback


class SimulatedRankDeath(RuntimeError):
    pass


class Plan:
    def __init__(self, rank):
        self.rank = rank
        self.log = lambda text: print(f"FAULT[{rank}] {text}", file=sys.stderr, flush=True)

    def before(self, it, x):
        if it == 6 and self.rank == 1:
            x[3] = float("inf")
            self.log("CRITICAL: bit flip injected, residual is NaN/inf from now on")
        if it == 11 and self.rank == 2:
            raise SimulatedRankDeath("rank 2 killed by signal 9 (simulated), MPI_Abort(MPI_COMM_WORLD, 137) suppressed")

    def survived(self, error):
        self.log("Fatal error in MPI_Allreduce: MPI_ERR_PROC_FAILED: " + str(error))
        traceback.print_exc()
