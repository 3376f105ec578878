"""The last look at a port: what stays in the job file and may belong to another machine."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from hpclaunch.port.foreign_values import WORDS
from hpclaunch.port.line_report import task
from hpclaunch.port.port_state import Port


def foreign_words(port: Port, settings: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of other GPUs, of other schedulers, and of what hpclaunch's script sets up itself."""
    node, command = port.target.node, settings["command"]
    own = {getattr(node, "gpu_vendor", None), port.target.scheduler.kind}
    others = {owner: pattern for owner, pattern in WORDS["belongs to"].items() if owner not in own}
    texts = {"command": command[-1] if command[:2] == ("bash", "-c") else " ".join(command)}
    texts |= {f"env {name}": f"{name} {value}" for name, value in settings.get("env", {}).items()}
    found = [
        (at, word, by) for at in texts for by in others for word in re.findall(others[by], texts[at], re.M)
    ]
    for where, word, owner in dict.fromkeys(found):
        read = re.search(rf"\$\{{?{re.escape(word)}\b", texts[where])
        case, line = "variable of the scheduler" if read else "foreign word", getattr(port.launch, "line", 1)
        yield task(case, where=where, word=word, owner=owner, line=line, here=port.here)
