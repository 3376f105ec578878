"""Reader of ``nvidia-smi -L``: the names and UUIDs of GPUs and of their MIG instances.

Source of the format: NVIDIA's MIG User Guide, "Getting Started with MIG" (driver R470 and newer: MIG-UUID).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import msgspec

from hpclaunch.errors import BadInputError
from hpclaunch.topology.partial import GpuFact
from hpclaunch.topology.tool_text import Line, bad_line

_HINT = "run nvidia-smi again and save the whole output"
_GPU = re.compile(r"[ \t]*GPU (\d{1,4}): (.{1,100}?) \(UUID: (GPU-[\w-]{8,60})\)$")
# Before R470 instances were named MIG-GPU-<uuid>/<GPU instance>/<compute instance>.
_INSTANCE = re.compile(r"[ \t]*MIG ([\w.+]{1,30})[ \t]+Device[ \t]+\d{1,3}: \(UUID: (MIG-[\w/-]{8,80})\)$")


def listed_gpus(lines: Sequence[Line], origin: str) -> list[GpuFact]:
    """Return GPUs and MIG instances in the order of the list; empty where there is none.

    A GPU with instances is left out: only these can be used. Raises BadInputError for a damaged list.
    """
    gpus: list[GpuFact] = []
    instances: dict[int, list[GpuFact]] = {}
    for line in lines:
        if match := _GPU.match(line.text):
            number = int(match[1])
            if number != len(gpus):
                raise bad_line(origin, line.number, f"GPU {number} follows {len(gpus)} GPUs", _HINT)
            gpus.append(GpuFact(index=number, device=number, model=match[2], uuid=match[3]))
        elif match := _INSTANCE.match(line.text):
            if not gpus:
                raise bad_line(origin, line.number, "a MIG instance before the line of its GPU", _HINT)
            model = f"{gpus[-1].model} MIG {match[1]}"
            instance = msgspec.structs.replace(gpus[-1], model=model, uuid=match[2])
            instances.setdefault(instance.index, []).append(instance)
    usable = [part for gpu in gpus for part in instances.get(gpu.index, [gpu])]
    return [msgspec.structs.replace(gpu, index=index) for index, gpu in enumerate(usable)]


def joined_list(rows: Sequence[GpuFact], listed: Sequence[GpuFact], origin: str) -> list[GpuFact]:
    """Return the listed GPUs with the affinities of the matrix; the rows where nothing is listed.

    Raises BadInputError where the two show different GPUs.
    """
    if not listed:
        return list(rows)
    row_of = {row.index: row for row in rows}
    if {gpu.device for gpu in listed} != set(row_of):
        raise BadInputError(f"{origin}: the matrix has {len(rows)} GPUs, the list has others", _HINT)
    return [
        msgspec.structs.replace(
            row_of[gpu.device or 0], index=gpu.index, device=gpu.device, model=gpu.model, uuid=gpu.uuid
        )
        for gpu in listed
    ]
