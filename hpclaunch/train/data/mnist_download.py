"""One file of the data set over HTTP: whole, within limits, or the reason why not.

Imported where a file is missing only: what speaks HTTP takes every rank a tenth of its start to load.
"""

import http.client
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from typing import IO

CONNECT_TIMEOUT_S = 15.0  # also the longest silence inside a transfer
TRANSFER_TIMEOUT_S = 900.0  # one file, from a mirror that never falls silent
_CHUNK_BYTES = 1 << 16


class UnreachableError(Exception):
    """This mirror did not answer."""


class DamagedError(Exception):
    """This mirror answered, but not with the right file."""


def download(url: str, most_bytes: int, log: Callable[[str], None]) -> bytes:
    """All of ``url``, no longer than ``most_bytes``, else UnreachableError or DamagedError."""
    request = urllib.request.Request(url, headers={"User-Agent": "hpclaunch"})  # noqa: S310 (checked)
    try:
        answer = urllib.request.build_opener(_Redirects).open(request, timeout=CONNECT_TIMEOUT_S)
    except urllib.error.HTTPError as error:
        error.close()
        raise DamagedError(f"answered {error.code} {error.reason}") from error
    except urllib.error.URLError as error:
        raise UnreachableError(str(error.reason)) from error
    except OSError as error:
        raise UnreachableError(str(error) or type(error).__name__) from error
    except http.client.HTTPException as error:
        raise DamagedError(f"answered with something that is not HTTP ({error!r})") from error
    with answer:
        return _body(answer, url, most_bytes, log)


def _body(answer: http.client.HTTPResponse, url: str, most_bytes: int, log: Callable[[str], None]) -> bytes:
    """The body of an answer, read in pieces up to the announced length and within the limits."""
    announced = answer.length
    if announced is not None and announced > most_bytes:
        raise DamagedError(f"announces {announced:,} bytes, but the file has {most_bytes:,} at most")
    body = bytearray()
    deadline = time.monotonic() + TRANSFER_TIMEOUT_S
    log(f"downloading {url}" + (f" ({announced:,} bytes)" if announced else ""))
    while True:
        try:
            piece = answer.read1(_CHUNK_BYTES)
        except (OSError, http.client.HTTPException) as error:
            raise DamagedError(f"cut after {len(body):,} bytes ({error!r})") from error
        if not piece:
            break
        body += piece
        if len(body) > most_bytes:
            raise DamagedError(f"sends more than the {most_bytes:,} bytes of the file")
        if time.monotonic() > deadline:
            raise DamagedError(f"too slow: {len(body):,} bytes in {TRANSFER_TIMEOUT_S:.0f} s")
    if announced is not None and len(body) != announced:
        raise DamagedError(f"cut: {len(body):,} bytes of {announced:,}")
    log(f"downloaded {url}: {len(body):,} bytes")
    return bytes(body)


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
