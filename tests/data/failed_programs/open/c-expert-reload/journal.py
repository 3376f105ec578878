import sys
import time

T0 = time.monotonic()


def journal(rank, *parts):
    print(f"+{time.monotonic() - T0:07.2f}s expert-{rank} |", *parts, file=sys.stdout, flush=True)
