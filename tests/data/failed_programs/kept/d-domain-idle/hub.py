import os
import socket
import struct
import time

PORT = int(os.environ["MASTER_PORT"]) + 53


class LinkDown(RuntimeError):
    pass


def take(sock):
    data = b""
    while len(data) < 8:
        part = sock.recv(8 - len(data))
        if not part:
            raise LinkDown("unexpected end of stream")
        data += part
    return struct.unpack("!d", data)[0]


class Hub:
    def __init__(self, socks):
        self.socks = socks

    def allsum(self, x):
        for s in self.socks:
            x += take(s)
        for s in self.socks:
            s.sendall(struct.pack("!d", x))
        return x


class Spoke:
    def __init__(self, rank):
        for attempt in range(150):
            try:
                self.sock = socket.create_connection((os.environ["MASTER_ADDR"], PORT), 20)
                break
            except OSError:
                time.sleep(0.2)
        self.sock.sendall(struct.pack("!d", rank))

    def allsum(self, x):
        self.sock.sendall(struct.pack("!d", x))
        return take(self.sock)


def make_hub(size):
    door = socket.create_server(("", PORT), backlog=size)
    door.settimeout(30)
    seats = {}
    while len(seats) < size - 1:
        s, _ = door.accept()
        s.settimeout(20)
        seats[int(take(s))] = s
    return Hub([seats[r] for r in sorted(seats)])
