"""A mirror on the loopback interface, good or bad as a test asks, and a small data set for it to serve."""

from __future__ import annotations

import gzip
import hashlib
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import numpy.typing as npt

from hpclaunch.train.data.mnist_files import MNIST_FILES, RemoteFile
from hpclaunch.train.data.synthetic_digits import synthetic_digits

CommandResult = Callable[[BaseHTTPRequestHandler], None]


def idx(array: npt.NDArray[np.uint8]) -> bytes:
    """The IDX file of ``array``, uncompressed."""
    return struct.pack(f">I{array.ndim}I", 0x0800 | array.ndim, *array.shape) + array.tobytes()


@cache
def small_contents() -> tuple[bytes, ...]:
    """Four IDX files in MNIST's order, uncompressed: 40 train and 10 test images."""
    return tuple(idx(array) for array in synthetic_digits(40, 10, seed=1))


@cache
def small_files() -> tuple[RemoteFile, ...]:
    """What `hpclaunch.train.data.mnist_files` must know to fetch `small_contents` under MNIST's names."""
    return tuple(
        RemoteFile(file.name, hashlib.sha256(content).hexdigest(), len(content))
        for file, content in zip(MNIST_FILES, small_contents(), strict=True)
    )


def sends(body: bytes, announced: int | None = None) -> CommandResult:
    """Answers with ``body``, announcing its length or another."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body) if announced is None else announced))
        handler.end_headers()
        handler.wfile.write(body)

    return answer


def sends_without_end(handler: BaseHTTPRequestHandler) -> None:
    """Sends zeros, of unknown length, until the other side has had enough."""
    handler.send_response(200)
    handler.end_headers()
    while True:
        handler.wfile.write(bytes(1 << 16))


def says(status: int, **headers: str) -> CommandResult:
    """Answers with a status and headers, and no body."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", "0")
        handler.end_headers()

    return answer


def good_answers() -> dict[str, CommandResult]:
    """Every small file as it should be, by name."""
    contents = small_contents()
    return {
        file.name: sends(gzip.compress(content)) for file, content in zip(MNIST_FILES, contents, strict=True)
    }


def all_files(answer: CommandResult) -> dict[str, CommandResult]:
    """The same answer for every file."""
    return {file.name: answer for file in MNIST_FILES}


class Mirror:
    """A mirror that runs: its address, and the names that were asked for, in order."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked: list[str] = []


@contextmanager
def serving(answers: Mapping[str, CommandResult]) -> Iterator[Mirror]:
    """A mirror at a port of its own that gives ``answers`` by file name, and 404 for other names."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            mirror.asked.append(name)
            try:
                answers.get(name, says(404))(self)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client left, as it should from a bad mirror

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    mirror = Mirror(f"http://127.0.0.1:{server.server_port}/mnist/")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield mirror
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
