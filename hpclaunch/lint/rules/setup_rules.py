"""Rules about the environment of programs: conda, virtual environments, containers."""

import re
from collections.abc import Iterator

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.known_variables import TABLE
from hpclaunch.lint.lint_rule import Context, Violation, rule
from hpclaunch.lint.program_words import program_words


@rule("container-without-gpu")
def container_without_gpu(context: Context) -> Iterator[Violation]:
    given = re.search(rf"(SINGULARITY|APPTAINER)_NV\b|{TABLE['of_amd']}", context.script.text)
    if given or (context.node is not None and context.node.gpu_vendor != "nvidia"):  # AMD's need no option
        return
    within = _containers(context.script)
    has_option = any(
        re.search(TABLE["has_gpu"], text) or "$" in text.split(" exec ")[0] for _, text in within
    )
    for line in [line for line, text in within if not has_option and _needs_gpu(context, text)][:1]:
        yield Violation(line, "the container is started without --nv: its program finds no GPU")


def _containers(script: Script) -> list[tuple[int, str]]:
    """Return line and words of each start of a container."""
    found = [
        (one.line, re.search(TABLE["in_containers"], " ".join(program_words(script, one))))
        for one in script.launches
    ]
    return [(line, match[0]) for line, match in found if match]


def _needs_gpu(context: Context, text: str) -> bool:
    """Tell whether the program in a container is for GPUs: by its words, or also by the request."""
    requested = context.requested
    asks = requested.gpus or requested.gpus_per_node or requested.gpus_per_task
    program = re.sub(r"\S*\.(sif|simg|img)\b|(^| )\S+=\S*", " ", text)
    named = re.search(r"(?i)(^|[ =])cuda(:\d)?( |$)", program)
    return bool(named or (asks and re.search(TABLE["uses_gpu"], program)))
