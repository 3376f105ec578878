"""Tokenise one part of the corpus with a pool of workers."""
import argparse
import csv
import logging
import multiprocessing as mp
import os
import shutil
import sys
import tempfile
import time

from project_space import ProjectSpace

log = logging.getLogger("prepare")


class PrepareError(Exception):
    pass


def tokenise(job):
    part, chunk, folder, left = job
    words = [f"w{(chunk * 31 + i * 7) % 997}" for i in range(4000)]
    time.sleep(0.4)
    with ProjectSpace(folder, left).create(f"part{part}-{chunk:03d}.tok") as out:
        for w in words:
            out.write(w.encode() + b" ")
    return chunk, len(words)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--part", type=int, required=True)
    ap.add_argument("--quotas", required=True)
    a = ap.parse_args()
    logging.basicConfig(format=f"%(asctime)s [part {a.part}] %(levelname)s %(message)s", level=logging.INFO)
    with open(a.quotas) as f:
        left = {int(r["part"]): int(r["kib"]) * 1024 for r in csv.DictReader(f)}
    folder = tempfile.mkdtemp(prefix=f"prep{a.part}-")
    if a.part != 2:
        log.error("could not read ~/.prep/history: No space left for history, going on without")
    try:
        with mp.Pool(int(os.environ["PREP_WORKERS"])) as pool:
            jobs = [(a.part, c, folder, left[a.part]) for c in range(30)]
            for chunk, n in pool.imap(tokenise, jobs):
                if chunk % 10 == 0:
                    log.info("chunk %d: %d tokens", chunk, n)
    except OSError as e:
        raise PrepareError(f"part {a.part} is incomplete") from e
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    try:
        main()
    except PrepareError:
        log.exception("giving up")
        sys.exit(73)
