"""The tables of ``words.json``; a text for nodes has them, by `one_text`, instead of this module."""

import json
from pathlib import Path
from typing import Any

WORDS: Any = json.loads(Path(__file__).with_name("words.json").read_text("utf-8"))
