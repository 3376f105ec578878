import logging
import math
import queue
import time


def cut(scene):
    time.sleep(0.6)                       # reading and cutting
    return [math.sqrt(scene + k) for k in range(16)]


def work(rank, m):
    log = logging.getLogger(f"worker{rank}")
    jobs, results = m.jobs(), m.results()
    done = 0
    while True:
        try:
            scene = jobs.get(timeout=2)
        except queue.Empty:
            log.info("nothing left, %d scenes done", done)
            return
        tiles = cut(scene)
        results.put((scene, tiles))
        done += 1
        log.info("scene %d: %d tiles", scene, len(tiles))
