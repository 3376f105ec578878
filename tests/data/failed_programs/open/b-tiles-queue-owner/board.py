import os
import queue
import time
from multiprocessing.managers import BaseManager

_jobs, _results = queue.Queue(), queue.Queue()


def get_jobs():
    return _jobs


def get_results():
    return _results


class Board(BaseManager):
    pass


def _make(host):
    return Board(address=(host, int(os.environ["MASTER_PORT"])), authkey=b"tiles")


def serve():
    Board.register("jobs", callable=get_jobs)
    Board.register("results", callable=get_results)
    m = _make("0.0.0.0")
    m.start()
    return m


def connect(tries=80):
    Board.register("jobs")
    Board.register("results")
    m = _make(os.environ["MASTER_ADDR"])
    for i in range(tries):
        try:
            m.connect()
            return m
        except ConnectionRefusedError:
            if i == tries - 1:
                raise
            time.sleep(0.25)
