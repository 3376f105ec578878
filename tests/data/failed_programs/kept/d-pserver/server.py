import json
import queue
import socket
import threading


class Server:
    def __init__(self, port, clients):
        self.sock = socket.create_server(("", port), reuse_port=False)
        self.clients = clients
        self.inbox = queue.Queue()
        self.finished = threading.Event()
        self.weights = {"w": 0.5, "b": 0.0, "scale": 1.0}
        self.momentum = {"w": 0.0, "b": 0.0}

    def start(self):
        threading.Thread(target=self._accept, name="acceptor", daemon=True).start()
        threading.Thread(target=self._apply, name="applier", daemon=True).start()
        print(f"[ps] serving {self.clients} workers", flush=True)

    def _accept(self):
        readers = []
        for _ in range(self.clients):
            conn, _ = self.sock.accept()
            t = threading.Thread(target=self._read, args=(conn,), daemon=True)
            t.start()
            readers.append(t)
        for t in readers:
            t.join()
        self.finished.set()

    def _read(self, conn):
        for line in conn.makefile("r"):
            self.inbox.put((conn, json.loads(line)))

    def _apply(self):
        while True:
            conn, msg = self.inbox.get()
            value = self.update(msg["name"], msg["grad"])
            conn.sendall((json.dumps(value) + "\n").encode())

    def update(self, name, grad):
        self.momentum[name] = 0.9 * self.momentum[name] + grad
        self.weights[name] -= 0.1 * self.momentum[name]
        return self.weights[name]
