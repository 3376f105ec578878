import json
import os
import random
import socket
import sys
import time

from service import Catalogue

RANK, WORLD = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
HOST, PORT = os.environ.get("MASTER_ADDR", "localhost"), int(os.environ.get("MASTER_PORT", 29400)) + 1
EXIT_NO_CATALOGUE = 111


def error(text):
    print(f"!!! ERROR !!! [granules/{RANK}] {text}", file=sys.stderr, flush=True)


def register(entry, tries):
    for attempt in range(1, tries + 1):
        try:
            with socket.create_connection((HOST, PORT), timeout=5) as link:
                link.sendall(json.dumps(entry).encode() + b"\n")
                if link.recv(16) == b"ok\n":
                    return
                error(f"catalogue hung up on granule {entry['id']}")
        except OSError as err:
            if tries < 30:
                error(f"attempt {attempt}/{tries}: cannot register granule {entry['id']}: {err}")
        time.sleep(1)
    error("giving up: the catalogue is gone")
    sys.exit(EXIT_NO_CATALOGUE)


def main():
    service = None
    if RANK == 0:
        service = Catalogue(PORT)
        service.start()
    rnd = random.Random(RANK)
    for number in range(20):
        time.sleep(0.1)                      # the retrieval itself
        if RANK == 0:
            continue
        entry = {"id": f"G{RANK:02d}{number:04d}", "cover": rnd.random()}
        register(entry, tries=40 if number == 0 else 4)
    print(f"[granules/{RANK}] all granules processed", flush=True)
    if service:
        service.join(timeout=15)
        if not service.is_alive():
            time.sleep(8)                    # let the clients drain
            sys.exit("granules: catalogue stopped before the end")


if __name__ == "__main__":
    main()
