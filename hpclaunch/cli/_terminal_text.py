"""Text of jobs on a terminal: control characters are shown, not obeyed; colours are left. No command."""

import codecs
import re
from collections.abc import Callable
from typing import BinaryIO

# A colour, or the beginning of one at the end of the text; else any control character, and the marks that
# turn the direction of text. Carriage returns draw progress bars, so they stay.
_SEQUENCES = re.compile(
    r"(?P<colour>\x1b\[[0-9;:]{0,40}m)|(?P<begun>\x1b(?:\[[0-9;:]{0,40})?\Z)"
    r"|(?P<control>[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069])"
)


class TerminalText:
    """Makes pieces of output harmless; a character or colour may be cut by the end of a piece."""

    def __init__(self) -> None:
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._begun = ""

    def __call__(self, data: bytes) -> bytes:
        """Return the piece with control characters written out, such as \\x1b for ESC."""
        self._begun, text = "", self._begun + self._decode(data)
        return _SEQUENCES.sub(self._shown, text).encode()

    def _shown(self, match: re.Match[str]) -> str:
        if match["control"]:
            return match[0].encode("unicode_escape").decode()
        if match["begun"]:
            self._begun = match[0]
            return ""
        return match[0]


def for_reader(output: BinaryIO) -> Callable[[bytes], bytes]:
    """Return what to do with a piece of output: nothing unless it goes to a terminal."""
    return TerminalText() if output.isatty() else bytes
