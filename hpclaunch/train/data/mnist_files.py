"""MNIST's four files from the cache or from public mirrors, verified before they are used.

A file is read or downloaded into memory, unpacked within bounds and compared with the SHA-256 of the
original content; only then is it written to the cache, under a temporary name that is renamed. So the
cache never holds a damaged file, and any number of processes may fill it at once.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..run_errors import BadDataError, BadRequestError
from .idx_format import read_bytes, unpack

Log = Callable[[str], None]

MIRRORS_VARIABLE = "HPCLAUNCH_MNIST_MIRRORS"
# Both carry the files of http://yann.lecun.com/exdb/mnist/, which no longer serves them: the copy of the
# Common Visual Data Foundation (github.com/cvdfoundation/mnist) and the one that torchvision reads.
DEFAULT_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)

CONNECT_TIMEOUT_S = 15.0  # also the longest silence inside a transfer
TRANSFER_TIMEOUT_S = 900.0  # one file, from a mirror that never falls silent
_CHUNK_BYTES = 1 << 16


class NoNetworkError(BadDataError):
    """No mirror could be reached: nothing answered at any of them."""


class _UnreachableError(Exception):
    """This mirror did not answer."""


class _DamagedError(Exception):
    """This mirror answered, but not with the right file."""


@dataclass(frozen=True)
class RemoteFile:
    """One file of the data set: its name at the mirrors, and its uncompressed content.

    The digest is that of the content, since mirrors may compress the same content differently.
    """

    name: str
    content_sha256: str
    content_bytes: int

    @property
    def most_bytes(self) -> int:
        """The longest transfer that can be this file: gzip adds little to what it cannot compress."""
        return self.content_bytes + self.content_bytes // 100 + 4096


# Train images, train labels, test images, test labels. The contents with these SHA-256 have the MD5 of
# the originals: 6bbc9ace..., a25bea73..., 2646ac64..., 27ae3e4e....
MNIST_FILES = (
    RemoteFile(
        "train-images-idx3-ubyte.gz",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
        47_040_016,
    ),
    RemoteFile(
        "train-labels-idx1-ubyte.gz",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
        60_008,
    ),
    RemoteFile(
        "t10k-images-idx3-ubyte.gz",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
        7_840_016,
    ),
    RemoteFile(
        "t10k-labels-idx1-ubyte.gz",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
        10_008,
    ),
)


def default_cache() -> Path:
    """``$XDG_CACHE_HOME/hpclaunch/mnist``, the variable's default being ``~/.cache``."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification: a relative path in the variable is to be ignored.
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "hpclaunch" / "mnist"


def chosen_mirrors(mirrors: Sequence[str] | None = None) -> list[str]:
    """The mirrors to ask, in order: those given, else those of the environment, else the public ones.

    Each comes back ending in "/". Raises BadRequestError for one that is not a plain http(s) address.
    """
    if mirrors is None:
        named = os.environ.get(MIRRORS_VARIABLE, "").split(",")
        mirrors = [mirror for part in named if (mirror := part.strip())] or DEFAULT_MIRRORS
    return [_checked_mirror(mirror) for mirror in mirrors]


def obtain(
    files: Sequence[RemoteFile], cache: Path, mirrors: Sequence[str], log: Log
) -> tuple[list[bytes], str]:
    """The uncompressed contents of ``files``, in order, and a text that says where they came from.

    Raises NoNetworkError when a file is not in the cache and no mirror answers, and BadDataError when
    mirrors answer but none with the right content.
    """
    contents: dict[str, bytes] = {}
    for file in files:
        if (content := _from_cache(file, cache, log)) is not None:
            contents[file.name] = content
    sources = [f"cache {cache}"] if contents else []
    ordered = list(mirrors)
    for file in files:
        if file.name in contents:
            continue
        mirror, raw, contents[file.name] = _from_mirrors(file, ordered, log)
        _keep(file, raw, cache, log)
        ordered.sort(key=lambda other: other != mirror)  # the one that works first; a stable sort
        if mirror not in sources:
            sources.append(mirror)
    return [contents[file.name] for file in files], " and ".join(sources)


def verified(file: RemoteFile, raw: bytes, where: str) -> bytes:
    """The uncompressed content of ``file`` given its bytes; raises BadDataError if it is a wrong one."""
    content = unpack(raw, where)
    digest = hashlib.sha256(content).hexdigest()
    if digest != file.content_sha256:
        raise BadDataError(
            f"{where}: wrong checksum: SHA-256 of the content is {digest}",
            f"The right content of {file.name} has {file.content_sha256}.",
        )
    return content


def _from_cache(file: RemoteFile, cache: Path, log: Log) -> bytes | None:
    """The content of the cached file, or None when it is absent or wrong; a wrong file is removed."""
    path = cache / file.name
    if not path.exists():
        return None
    try:
        return verified(file, read_bytes(path, file.most_bytes), str(path))
    except BadDataError as error:
        log(f"not used from the cache: {error.message}")
        # If another process has just put the right file here, all that is lost is one transfer.
        with contextlib.suppress(OSError):
            path.unlink()
        return None


def _from_mirrors(file: RemoteFile, mirrors: Sequence[str], log: Log) -> tuple[str, bytes, bytes]:
    """The first mirror that has the right file, the file as it came, and its content."""
    answered = False
    failures = []
    for mirror in mirrors:
        url = mirror + file.name
        try:
            raw = _download(url, file, log)
            return mirror, raw, verified(file, raw, url)
        except _UnreachableError as error:
            failures.append(f"{url}: no answer: {error}")
        except _DamagedError as error:
            answered = True
            failures.append(f"{url}: {error}")
        except BadDataError as error:
            answered = True
            failures.append(error.message)
        log(failures[-1])
    listed = "".join(f"\n    {failure}" for failure in failures) or " (the list of mirrors is empty)"
    if answered:
        raise BadDataError(
            f"{file.name}: no mirror has the right file:{listed}",
            "Name a folder that has it with --data DIR, other mirrors in "
            f"{MIRRORS_VARIABLE}, or train on synthetic digits with --dataset synthetic.",
        )
    raise NoNetworkError(
        f"{file.name}: no mirror could be reached:{listed}",
        f"Name a folder that has it with --data DIR, other mirrors in {MIRRORS_VARIABLE} "
        "(a proxy in https_proxy is used), or train on synthetic digits with --dataset synthetic.",
    )


def _download(url: str, file: RemoteFile, log: Log) -> bytes:
    """The body of ``url``, whole and no longer than ``file`` can be, else _Unreachable or _Damaged."""
    request = urllib.request.Request(url, headers={"User-Agent": "hpclaunch"})  # noqa: S310 (checked)
    try:
        answer = _opener().open(request, timeout=CONNECT_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        raise _DamagedError(f"answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise _UnreachableError(str(error.reason)) from error
    except OSError as error:
        raise _UnreachableError(str(error) or type(error).__name__) from error
    except http.client.HTTPException as error:
        raise _DamagedError(f"answered with something that is not HTTP ({error!r})") from error
    with answer:
        return _body(answer, url, file, log)


def _body(answer: http.client.HTTPResponse, url: str, file: RemoteFile, log: Log) -> bytes:
    """The body of an answer, read in pieces up to the announced length and within the limits."""
    announced = _announced_length(answer)
    if announced is not None and announced > file.most_bytes:
        raise _DamagedError(f"announces {announced:,} bytes, but {file.name} has {file.most_bytes:,} at most")
    body = bytearray()
    deadline = time.monotonic() + TRANSFER_TIMEOUT_S
    with _Progress(url, announced, log) as progress:
        while True:
            try:
                piece = answer.read1(_CHUNK_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise _DamagedError(f"cut after {len(body):,} bytes ({error!r})") from error
            if not piece:
                break
            body += piece
            progress.show(len(body))
            if len(body) > file.most_bytes:
                raise _DamagedError(f"sends more than the {file.most_bytes:,} bytes of {file.name}")
            if time.monotonic() > deadline:
                raise _DamagedError(f"too slow: {len(body):,} bytes in {TRANSFER_TIMEOUT_S:.0f} s")
    if announced is not None and len(body) != announced:
        raise _DamagedError(f"cut: {len(body):,} bytes of {announced:,}")
    return bytes(body)


def _announced_length(answer: http.client.HTTPResponse) -> int | None:
    text = answer.headers.get("Content-Length", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _keep(file: RemoteFile, raw: bytes, cache: Path, log: Log) -> None:
    """Put the verified file into the cache; a cache that cannot be written costs only the next download."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=cache, prefix=f".{file.name}.", delete=False) as temporary:
            try:
                temporary.write(raw)
                temporary.flush()
                os.fsync(temporary.fileno())
                os.replace(temporary.name, cache / file.name)
            except BaseException:
                os.unlink(temporary.name)
                raise
    except OSError as error:
        log(f"{file.name} is not stored in the cache {cache}: {error.strerror or error}")


def _checked_mirror(mirror: str) -> str:
    """``mirror`` ending in "/", or BadRequestError; an address with a password is not repeated."""
    right = "A mirror is an address such as https://example.org/mnist/ (http or https)."
    if "@" in mirror:
        raise BadRequestError(
            f"mirror at {mirror.rpartition('@')[2]!r}: user names and passwords are not used", right
        )
    try:
        parts = urllib.parse.urlsplit(mirror)
        plain = parts.hostname and parts.port != 0 and not (parts.query or parts.fragment)
    except ValueError:  # from a port that is not a number, or half an IPv6 address
        plain = None
    if not plain or parts.scheme not in ("http", "https") or any(c <= " " or c > "~" for c in mirror):
        raise BadRequestError(f"mirror {mirror!r}: not a plain http(s) address", right)
    return mirror if mirror.endswith("/") else mirror + "/"


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows redirects to http(s) only, and never from https to http."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: http.client.HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        """The request to follow, as urllib makes it; raises HTTPError for a scheme that is refused."""
        scheme = urllib.parse.urlsplit(newurl).scheme
        if scheme != "https" and scheme != req.type:
            raise urllib.error.HTTPError(newurl, code, f"(redirect to {scheme} refused)", headers, fp)
        fp.close()  # else urllib reads the redirect's own body, however long it is
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _opener() -> urllib.request.OpenerDirector:
    """An opener that knows http and https and nothing else: urllib's default also opens file: and ftp:."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler(),
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
        urllib.request.UnknownHandler(),
        _Redirects(),
    ):
        opener.add_handler(handler)
    return opener


class _Progress:
    """How far a transfer is: a bar on a terminal's stderr, else one line at its start and at its end."""

    def __init__(self, url: str, total_bytes: int | None, log: Log) -> None:
        self._url = url
        self._total = total_bytes
        self._log = log
        self._bar = sys.stderr.isatty()
        self._shown_at = float("-inf")
        self._bytes = 0

    def __enter__(self) -> _Progress:
        self._log(f"downloading {self._url}" + (f" ({self._total:,} bytes)" if self._total else ""))
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar:
            self._draw()
            sys.stderr.write("\n")
            sys.stderr.flush()
        elif exception == (None, None, None):
            self._log(f"downloaded {self._url.rpartition('/')[2]}: {self._bytes:,} bytes")

    def show(self, done_bytes: int) -> None:
        """Note how many bytes have come; draws at most ten times a second."""
        self._bytes = done_bytes
        if self._bar and time.monotonic() - self._shown_at > 0.1:
            self._shown_at = time.monotonic()
            self._draw()

    def _draw(self) -> None:
        name = self._url.rpartition("/")[2]
        megabytes = f"{self._bytes / 1e6:.1f} MB"
        if self._total:
            filled = 30 * min(self._bytes, self._total) // self._total
            megabytes = (
                f"[{'#' * filled}{'.' * (30 - filled)}] {self._bytes / 1e6:.1f}/{self._total / 1e6:.1f} MB"
            )
        sys.stderr.write(f"\r{name} {megabytes}")
        sys.stderr.flush()
