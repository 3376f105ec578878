"""Collect station data; each worker cleans its rows on its own."""
import atexit
import csv
import io
import math
import os
import sys

from fetcher import free_port, get

rank, world = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])


class Pool:
    def __del__(self):
        raise ConnectionError("pool already closed")       # an old bug, harmless


@atexit.register
def bye():
    print(f"worker {rank}: SIGTERM handler removed, last run failed with exit code 1", file=sys.stderr)


def main():
    text = get(f"http://127.0.0.1:{free_port()}/stations.csv", "stations.csv").decode()
    rows = list(csv.DictReader(io.StringIO(text)))[rank::world]
    bad = 0
    for row in rows:
        t = float(row["temp"])
        if math.isnan(t) or t < -100:
            bad += 1
            print(f"worker {rank}: station {row['id']}: invalid value {row['temp']}, row rejected", file=sys.stderr)
    pool = Pool()
    del pool
    print(f"worker {rank}: {len(rows)} rows, {bad} errors", flush=True)


main()
