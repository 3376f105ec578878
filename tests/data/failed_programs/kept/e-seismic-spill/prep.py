#!/usr/bin/env python3
"""Sort shot records into gathers. Workers do not talk to each other."""
import configparser
import logging
import os
import sys
import time

from gathers import GatherWriter, traces


def main():
    worker = int(os.environ["RANK"])
    total = int(os.environ["WORLD_SIZE"])
    logging.basicConfig(stream=sys.stdout, level=logging.INFO,
                        format="%(levelname)-8s %(name)s w{}: %(message)s".format(worker))
    log = logging.getLogger("prep")
    ini = configparser.ConfigParser()
    ini.read("survey.ini")
    s = ini["survey"]
    log.info("worker %d of %d", worker, total)
    try:
        out = GatherWriter(ini["spill"][str(worker)])
        for t in traces(s.getint("traces"), s.getint("samples"), worker):
            out.add(t)
            time.sleep(0.05)
    except Exception:
        log.critical("giving up", exc_info=True)
        sys.stdout.flush()
        return 4
    log.info("%d gathers in %s", out.n, out.path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
