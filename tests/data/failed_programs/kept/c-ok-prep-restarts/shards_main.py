"""Image resizing farm. Workers may die (old codec); the driver starts them again."""
import logging
import os
import signal
import sys
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

from resize import resize

RANK = next((int(os.environ[k]) for k in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK") if k in os.environ), 0)
logging.basicConfig(level=logging.INFO, format="%(levelname)s [%(process)d] " + f"part{RANK}: %(message)s")
log = logging.getLogger()


def attempt(todo, tries):
    done = {}
    with ProcessPoolExecutor(2) as pool:
        jobs = {n: pool.submit(resize, n, tries) for n in todo}
        for n, job in jobs.items():
            try:
                done[n] = job.result()
            except BrokenProcessPool:
                log.exception("FATAL: a worker died on image %d (killed by signal %d?)", n, signal.SIGKILL)
            except (ValueError, MemoryError) as e:
                log.error("image %d failed: %r", n, e, exc_info=e)
    return done


def main():
    todo, result = set(range(24)), {}
    for tries in range(4):
        result |= attempt(sorted(todo - set(result)), tries)
        missing = len(todo) - len(result)
        if not missing:
            log.info("24 of 24 images written after %d retries", tries)
            return 0
        log.critical("%d images failed, restarting the pool", missing)
    return 1


if __name__ == "__main__":
    sys.exit(main())
