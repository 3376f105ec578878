"""Score board on rank 0, plain sockets through multiprocessing.connection."""
import os
import time
from multiprocessing.connection import Client, Listener, wait

KEY = b"trials"


def _port():
    return int(os.environ["MASTER_PORT"])


class BoardIncomplete(Exception):
    pass


class Board:
    def __init__(self, size):
        self.lis = Listener(("0.0.0.0", _port()), backlog=16, authkey=KEY)
        self.peers = [self.lis.accept() for _ in range(size - 1)]

    def collect(self, own, patience):
        scores, end, open_ = {0: own}, time.time() + patience, list(self.peers)
        while open_:
            for p in wait(open_, timeout=max(0.0, end - time.time())):
                try:
                    r, v = p.recv()
                    scores[r] = v
                except EOFError as e:
                    raise BoardIncomplete(f"a trial hung up, have only {sorted(scores)}") from e
                open_.remove(p)
            if open_ and time.time() > end:
                raise BoardIncomplete(f"have only {sorted(scores)} after {patience} s")
        best = min(scores, key=scores.get)
        for p in self.peers:
            p.send(best)
        return best


def connect(tries=60):
    for _ in range(tries):
        try:
            return Client((os.environ["MASTER_ADDR"], _port()), authkey=KEY)
        except ConnectionRefusedError:
            time.sleep(0.5)
    raise ConnectionRefusedError("no score board on rank 0")


def exchange(peer, rank, value):
    peer.send((rank, value))
    return peer.recv()
