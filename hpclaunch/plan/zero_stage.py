"""DeepSpeed's configuration with the ZeRO stage of ``--zero-stage``. Pure."""

import json

from hpclaunch.plan.request import JobRequest
from hpclaunch.scheduler.job_header import Line
from hpclaunch.software.script_lines import line
from hpclaunch.software.shell_quoting import literal

_CONFIG_OPTIONS = ("--deepspeed_config", "--deepspeed-config", "--deepspeed")
"""DeepSpeed's own option, how argparse may spell it, and that of the Hugging Face trainer."""

_SET_STAGE = """'import json, sys; config = json.load(open(sys.argv[1]))
config.setdefault("zero_optimization", {})["stage"] = int(sys.argv[2])
json.dump(config, open(sys.argv[3], "w"), indent=2)'"""


def deepspeed_config(argv: tuple[str, ...]) -> str | None:
    """Return the configuration that a command names for DeepSpeed; None: it names none.

    ``--deepspeed`` is a switch in DeepSpeed's own programs and takes a file in others.
    """
    for word, following in zip(argv, (*argv[1:], ""), strict=True):
        option, equals, value = word.partition("=")
        file = value if equals else following
        if option in _CONFIG_OPTIONS and file.endswith(".json") and not file.startswith("-"):
            return file
    return None


def zero_lines(request: JobRequest, python: str) -> list[Line]:
    """Return the lines that make the job's configuration; ``python``: the interpreter of the job.

    DeepSpeed reads its stage from its JSON configuration only, so the job gets one with that stage.
    """
    stage, given = request.zero_stage, deepspeed_config(request.command.argv)
    own = line("deepspeed config")
    if given is None:
        fragment = json.dumps({"zero_optimization": {"stage": stage}})
        text = f"printf '%s\\n' {literal(fragment)} > \"$HPCLAUNCH_DS_CONFIG\""
        return [own, Line(text=text, reason="the command names none: this one holds the ZeRO stage alone")]
    text = f'{literal(python)} -c {_SET_STAGE} {literal(given)} {stage} "$HPCLAUNCH_DS_CONFIG"'
    return [own, Line(text=text, reason=f"a copy of {given}, with ZeRO stage {stage}")]


def own_config(config: str) -> Line:
    """Return the line that replaces the file among the program's arguments.

    Quoted words in a pattern of ``case`` stand for themselves.
    """
    quoted = literal(config)
    text = (
        f"given={quoted}\n"
        'for word; do case $word in "$given" | --*="$given") '
        'word=${word%"$given"}$HPCLAUNCH_DS_CONFIG ;; esac\n  shift && set -- "$@" "$word"; done'
    )
    return Line(text=text, reason="the job's own configuration of DeepSpeed instead of the given one")
