"""MNIST's four files from the cache or from public mirrors, verified before they are used.

A file is read or downloaded into memory, unpacked within bounds and compared with the SHA-256 of the
original content; only then is it written to the cache, under a temporary name that is renamed. So the
cache never holds a damaged file, and any number of processes may fill it at once.
"""

import contextlib
import hashlib
import json
import os
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..run_errors import BadDataError, BadRequestError
from ..whole_files import write_whole
from .idx_format import read_bytes, unpack

Log = Callable[[str], None]

MIRRORS_VARIABLE = "HPCLAUNCH_MNIST_MIRRORS"
# Both carry the files of http://yann.lecun.com/exdb/mnist/, which no longer serves them: the copy of the
# Common Visual Data Foundation (github.com/cvdfoundation/mnist) and the one that torchvision reads.
DEFAULT_MIRRORS = (
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
)


class NoNetworkError(BadDataError):
    """No mirror could be reached: nothing answered at any of them."""


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
_TABLE = json.loads(Path(__file__).with_name("mnist_files.json").read_text())
MNIST_FILES = tuple(RemoteFile(**row) for row in _TABLE)


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
        raise BadDataError.of("wrong checksum", where=where, digest=digest, file=file)
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
    from .mnist_download import DamagedError, UnreachableError, download

    answered = False
    failures = []
    for mirror in mirrors:
        url = mirror + file.name
        try:
            raw = download(url, file.most_bytes, log)
            return mirror, raw, verified(file, raw, url)
        except UnreachableError as error:
            failures.append(f"{url}: no answer: {error}")
        except DamagedError as error:
            answered = True
            failures.append(f"{url}: {error}")
        except BadDataError as error:
            answered = True
            failures.append(error.message)
        log(failures[-1])
    listed = "".join(f"\n    {failure}" for failure in failures) or " (the list of mirrors is empty)"
    values = {"file": file, "listed": listed, "variable": MIRRORS_VARIABLE}
    if answered:
        raise BadDataError.of("no right mirror", **values)
    raise NoNetworkError.of("no mirror", **values)


def _keep(file: RemoteFile, raw: bytes, cache: Path, log: Log) -> None:
    """Put the verified file into the cache; a cache that cannot be written costs only the next download."""
    try:
        cache.mkdir(parents=True, exist_ok=True)
        write_whole(cache / file.name, lambda target: target.write(raw))
    except OSError as error:
        log(f"{file.name} is not stored in the cache {cache}: {error.strerror or error}")


def _checked_mirror(mirror: str) -> str:
    """``mirror`` ending in "/", or BadRequestError; an address with a password is not repeated."""
    if "@" in mirror:
        raise BadRequestError.of("mirror with a password", address=mirror.rpartition("@")[2])
    try:
        parts = urllib.parse.urlsplit(mirror)
        plain = parts.hostname and parts.port != 0 and not (parts.query or parts.fragment)
    except ValueError:  # from a port that is not a number, or half an IPv6 address
        plain = None
    if not plain or parts.scheme not in ("http", "https") or any(c <= " " or c > "~" for c in mirror):
        raise BadRequestError.of("bad mirror", mirror=mirror)
    return mirror if mirror.endswith("/") else mirror + "/"
