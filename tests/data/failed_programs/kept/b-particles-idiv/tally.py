from mpi4py import MPI


class Tally:
    def __init__(self, comm):
        self.comm = comm
        self.absorbed = 0

    def add(self, hits, per_bin):
        self.absorbed += self.comm.allreduce(hits, op=MPI.SUM)
        self.last = self.comm.allgather(per_bin)
