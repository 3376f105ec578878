import json
import socket
import time


class Client:
    def __init__(self, host, port, rank):
        for _ in range(100):
            try:
                self.sock = socket.create_connection((host, port), timeout=9)
                break
            except ConnectionRefusedError:
                time.sleep(0.2)
        else:
            raise ConnectionError(f"no parameter server at {host}:{port}")
        self.rank = rank
        self.replies = self.sock.makefile("r")

    def push(self, name, grad):
        self.sock.sendall((json.dumps({"name": name, "grad": grad}) + "\n").encode())
        reply = self.replies.readline()
        if not reply:
            raise ConnectionError("server closed the connection")
        return json.loads(reply)

    def close(self):
        self.replies.close()
        self.sock.close()
