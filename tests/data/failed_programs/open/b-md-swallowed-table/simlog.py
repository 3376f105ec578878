import logging
import os
import sys

STATUS = 25


def get_logger(rank):
    """Status lines go to the screen, all the rest into the rank's own file."""
    logging.addLevelName(STATUS, "STATUS")
    os.makedirs("logs", exist_ok=True)
    log = logging.getLogger("md")
    log.setLevel(logging.DEBUG)
    log.propagate = False
    file = logging.FileHandler(f"logs/md.{rank}.log", mode="w")
    file.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    log.addHandler(file)
    screen = logging.StreamHandler(sys.stdout)
    screen.setFormatter(logging.Formatter(f"[rank {rank}] %(message)s"))
    screen.addFilter(lambda r: r.levelno == STATUS)
    log.addHandler(screen)
    log.status = lambda msg, *a: log.log(STATUS, msg, *a)
    return log
