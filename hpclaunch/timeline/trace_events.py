"""Events of a Chrome trace as a stream: whatever its size, and also where the file was cut or badly quoted.

The reader is written here because the JSON readers that stream (ijson, json-stream) stop at the first byte
that is not JSON, while a timeline of a job that was killed ends within an event, and Horovod does not escape
the names of tensors. Most of a trace is decoded by `json.loads`, about a megabyte at once; only a piece that
it refuses is read event by event.
"""

import codecs
import json
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from hpclaunch.errors import BadInputError
from hpclaunch.package_data import package_constants, package_patterns

Event = dict[str, Any]

MERGED: Event = {"hpclaunch": "merged ranks"}
"""In the head of a trace that was made of those of all ranks: it does not belong to one rank."""
LIMIT = package_constants("timeline/limits.yaml", "events")

_GZIP = b"\x1f\x8b"
_FORM = package_patterns("timeline/forms.yaml", "trace_events")
# NaN and Infinity, which some profilers write, are not JSON: Perfetto and browsers refuse them.
DECODER = json.JSONDecoder(parse_constant=lambda _: None)


def microseconds(value: Any) -> float:
    """Return a time of an event; ValueError or TypeError for what is none, such as 1e999."""
    time = float(value)
    if not abs(time) < LIMIT.latest_us:
        raise ValueError(value)
    return time


def event_text(event: Event) -> str:
    """Return the JSON of an event; a number that JSON does not have becomes null."""
    try:
        return json.dumps(event, allow_nan=False)
    except ValueError:
        return json.dumps(DECODER.decode(json.dumps(event)))


def inflated(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the chunks, decompressed if in gzip, up to a cut. Raises BadInputError: damaged data."""
    inflate: zlib._Decompress | None = None
    first = True
    for chunk in chunks:
        if first and chunk[:2] == _GZIP:
            inflate = zlib.decompressobj(wbits=31)
        first = False
        if inflate is None:
            yield chunk
            continue
        while chunk:
            try:
                yield inflate.decompress(chunk, 1 << 20)
            except zlib.error as error:
                raise BadInputError(f"damaged compressed data: {error}", "copy the file again") from None
            chunk = inflate.unconsumed_tail or inflate.unused_data
            if inflate.eof:
                inflate = zlib.decompressobj(wbits=31)


class TraceReader:
    """The events of one trace; iterate once. What is known about all of them is in the attributes then."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        """``chunks``: the file, decompressed, in pieces of any size, in which no event is expected yet."""
        decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._texts = (decode(chunk) for chunk in chunks)
        self._text = ""
        self._at_end = self._ended = False
        self.head: Event = {}
        """Keys of the object before its events; empty for a trace that is only an array."""
        self.tail = ""
        """The text after the events."""
        self.is_object = False
        self.whole = False
        """Whether nothing is lost, and the events end with their bracket."""
        self.events = 0
        """How many were read."""
        self.repaired = 0
        """Events whose unescaped name was read all the same."""
        self.lost = 0
        """Places where something that is not an event was passed over, a cut end included."""

    def __iter__(self) -> Iterator[Event]:
        """Yield every whole event in the order of the file. Raises BadInputError if this is not a trace."""
        for event in self._whole_events():
            self.events += 1
            yield event

    def _whole_events(self) -> Iterator[Event]:
        self._begin()
        while not self._ended:
            cut = self._text.rfind("},") + 1
            if cut:
                try:
                    events = DECODER.decode("[" + self._text[:cut].lstrip(", \t\r\n") + "]")
                except (ValueError, RecursionError):
                    yield from self._one_by_one()
                else:
                    yield from (event for event in events if isinstance(event, dict))
                    self._text = self._text[cut:]
            elif self._at_end or len(self._text) > LIMIT.largest_event:
                yield from self._one_by_one()
            if self._at_end and not cut:
                return
            self._more()

    def _begin(self) -> None:
        while not self._at_end and len(self._text.lstrip("\ufeff \t\r\n")) < 1:
            self._more()
        text = self._text.lstrip("\ufeff \t\r\n")
        if text.startswith("["):
            self._text = text[1:]
            return
        if not text.startswith("{"):
            found = f"it begins with {text[:20]!r}" if text else "it is empty"
            raise BadInputError.case("trace: other text", found=found)
        self.is_object = True
        while (key := _FORM.events_key.search(self._text)) is None:
            if self._at_end or len(self._text) > LIMIT.largest_event:
                raise BadInputError.case("trace: no events")
            self._more()
        self.head = _object(self._text[: key.start()])
        self._text = self._text[key.end() :]

    def _more(self) -> None:
        try:
            self._text += next(self._texts)
        except StopIteration:
            self._at_end = True

    def _one_by_one(self) -> Iterator[Event]:
        """Yield what the text has, and leave what may become an event with more text."""
        at = 0
        while True:
            at = _FORM.blank.match(self._text, at).end()
            if at == len(self._text):
                break
            if self._text[at] == "]":
                self._ended, self.whole = True, not self.lost
                self.tail = self._text[at + 1 :] + "".join(
                    text for text, _ in zip(self._texts, range(64), strict=False)
                )
                break
            try:
                event, at = DECODER.raw_decode(self._text, at)
            except (ValueError, RecursionError):
                step = self._recovered(at)
                if step is None:
                    break
                event, at = step
            if isinstance(event, dict) and ("ph" in event or not self.lost):  # else a part of a cut one
                yield event
        self._text = self._text[at:]

    def _recovered(self, at: int) -> tuple[Event | None, int] | None:
        """Return an event whose name was not escaped, or None, and where to go on; None: text is missing."""
        if (bad := _FORM.bad_name.match(self._text, at)) and (bad.end() < len(self._text) or self._at_end):
            self.repaired += 1
            return {
                "name": "process_name",
                "ph": "M",
                "pid": int(bad[1]),
                "args": {"name": bad[2]},
            }, bad.end()
        if not self._at_end and len(self._text) - at < LIMIT.patience:
            return None
        after = _FORM.next_event.search(self._text, at + 1)
        self.lost += 1
        return None, after.end() if after else len(self._text)


def _object(text: str) -> Event:
    """Return the keys of an object that is cut before one of its keys."""
    try:
        head = DECODER.decode(text.rstrip().rstrip(",") + "}")
    except (ValueError, RecursionError):
        return {}
    return head if isinstance(head, dict) else {}
