"""Placeholders of samples and templates: ``<project>``, ``[budget code]``, ``project_xxxx``, ``{{ nodes }}``.

What a script leaves open is said once, and no rule takes it for a value.
"""

from __future__ import annotations

import re

_WORDS = (
    r"<[A-Za-z_][^<>\n=]*>",
    r"<<[^<>\n]*>>",
    r"\[[A-Za-z][A-Za-z _.-]*\]",
    r"\{\{(?!(?:id|name|jobid|size|tmpdir|env|taskid|nnodes)\b)[^{}\n]*\}\}",  # Flux has its own
    r"\{%[^{}\n]*%\}",
    r"%\([A-Za-z_]\w*\)[sdf]",
    r"@[A-Z][A-Z0-9_]*@",
    r"\b\w*[xX]{4,}\w*\b",
    r"\b(?:nn|NN|g|p|ta|dd)[xXN]{3,}k?\b",
    r"\bHH:MM(:SS)?\b|\bhh:mm(:ss)?\b",
    r"\?{2,}",
    r"\.{3}",
    r"(?i:(?<![$\w])(?:your[-_ ]?|my[-_])(?:project|account|allocation|budget|queue|partition|email)\w*)",
    r"(?i:\bto[-_ ]be[-_ ](?:specified|filled)\b|\b(?:change|fill|replace)[-_]?me\b)",
    r"(?<![${\w])(?:PROJECT|PROJ|ACCOUNT|BUDGET|PARTITION|QUEUE|ALLOCATION|RESERVATION)(?:_?(?:ID|CODE|NAME|NUMBER))?\b",
)
_PLACEHOLDER = re.compile("|".join(_WORDS))


def placeholder_in(text: str) -> str | None:
    """Return the first placeholder in a value of a directive; None: it has none."""
    match = _PLACEHOLDER.search(text)
    return match[0] if match else None
