"""A catalogue of processed granules, served by rank 0 over plain TCP (one JSON line per request)."""
import json
import socket
import threading


class Catalogue(threading.Thread):
    def __init__(self, port, every=20):
        super().__init__(name="catalogue", daemon=True)
        self.listener = socket.create_server(("", port), backlog=16)
        self.every, self.entries = every, []
        self.cloud = {"clear": [], "broken": [], "overcast": []}

    def run(self):
        try:
            while True:
                link, _ = self.listener.accept()
                with link:
                    request = json.loads(link.makefile().readline())
                    self.store(request)
                    link.sendall(b"ok\n")
        finally:
            self.listener.close()

    def store(self, request):
        self.entries.append(request)
        kind = "clear" if request["cover"] < 0.2 else "broken"
        self.cloud[kind].append(request["cover"])
        if len(self.entries) % self.every == 0:
            self.summary()

    def summary(self):
        means = {k: sum(v) / len(v) for k, v in self.cloud.items()}
        print("CATALOGUE", len(self.entries), means, flush=True)
