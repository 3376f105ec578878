"""Rules on how the script runs on: exit status, pipes, thrown-away output, shell options."""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import get_close_matches
from itertools import pairwise

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.lint_rule import Context, Edit, Found, rule
from hpclaunch.lint.shell_syntax import Command, Word

_SET_LETTERS = {
    "allexport": "-a", "errexit": "-e", "nounset": "-u", "xtrace": "-x", "verbose": "-v", "noglob": "-f",
    "noclobber": "-C", "errtrace": "-E", "functrace": "-T", "monitor": "-m", "noexec": "-n", "onecmd": "-t",
    "notify": "-b", "hashall": "-h", "keyword": "-k", "physical": "-P", "privileged": "-p",
    "braceexpand": "-B", "histexpand": "-H",
}  # fmt: skip
_SET_NAMES = [
    *_SET_LETTERS, "pipefail", "posix", "emacs", "vi", "history", "ignoreeof", "interactive-comments",
    "nolog",
]  # fmt: skip
_SET_VALID = set("abefhkmnoprtuvxBCEHPT")


@rule(
    "status-lost-in-pipe",
    "error",
    what="The exit status of the launcher is lost behind a pipe.",
    why="A pipeline ends with the status of its last command, and tee is always content: a failed training"
    " counts as a success.",
    remedy="Put `set -o pipefail` before it, or ask `${PIPESTATUS[0]}`.",
    bad='srun python train.py | tee train.log\nif [ $? -eq 0 ]; then echo "Success"; fi',
    good='set -o pipefail\nif srun python train.py | tee train.log; then echo "Success"; fi',
)
def status_lost_in_pipe(context: Context) -> Iterator[Found]:
    """Find launchers whose output goes into a pipe without pipefail."""
    script = context.script
    for launch in script.steps():
        command = launch.command
        if not command.piped_out or command.depth or launch.trivial or _pipefail(script, command.start):
            continue
        if any(ref.name == "PIPESTATUS" and ref.offset > command.end for ref in script.shell.refs):
            continue
        last, ignored = _end_of_pipe(script, command)
        if ignored:
            continue
        asked = [r.line for r in script.shell.refs if r.name == "?" and r.offset > command.end][:1]
        read = f", and line {asked[0]} asks for it" if asked else ""
        message = f"the exit status of {launch.launcher} is lost behind the pipe: it is {last}'s{read}"
        yield Found(launch.line, message)


def _end_of_pipe(script: Script, command: Command) -> tuple[str, bool]:
    """Return the name of the pipeline's last command, and whether its status is ignored by ``|| true``."""
    later = [one for one in script.commands if one.start > command.start and one.depth == command.depth]
    for place, one in enumerate(later):
        if one.piped_in and not one.piped_out:
            behind = later[place + 1].name if one.after == "||" and place + 1 < len(later) else ""
            return one.name or "the last command", behind in ("true", ":")
    return "the last command", False


def _pipefail(script: Script, before: int) -> bool:
    """Tell whether pipefail is on at an offset."""
    on = re.search(r"\s-\w*o\s+pipefail\b", script.shebang) is not None
    for command in script.commands:
        if command.start < before and command.name in ("set", "shopt") and not command.depth:
            texts = [word.visible for word in command.words]
            for flag, name in pairwise(texts):
                if name == "pipefail" and (flag[1:].endswith("o") or command.name == "shopt"):
                    on = (
                        flag.startswith("-") and "u" not in flag
                        if command.name == "shopt"
                        else flag[0] == "-"
                    )
    return on


@rule(
    "stderr-discarded",
    "warning",
    what="The stderr of the launcher is thrown away.",
    why="What Slurm, MPI, NCCL and Python say of a failure goes there; without it a dead job leaves no"
    " reason.",
    remedy="Leave stderr alone, or keep it in a file: `2>train.err`.",
    bad="srun python train.py 2>/dev/null",
    good="srun python train.py",
)
def stderr_discarded(context: Context) -> Iterator[Found]:
    """Find launchers, the whole script or the job whose stderr goes to /dev/null."""
    script = context.script
    for launch in script.steps():
        guarded = launch.launcher == "python" and (launch.command.condition or launch.command.after == "||")
        own = script.value(launch.option("error")).text if launch.launcher == "srun" else None
        if not (launch.trivial or guarded) and (_discards(launch.command) or own in ("/dev/null", "none")):
            yield Found(launch.line, f"stderr of {launch.launcher} is thrown away (/dev/null)")
    for command in script.commands:
        if command.name == "exec" and len(command.words) == 1 and _discards(command):
            yield Found(command.line, "stderr of everything behind this line is thrown away (/dev/null)")
    error = script.directive("error")
    if error is not None and error.value == "/dev/null":
        yield Found(error.line, "stderr of the job is thrown away (/dev/null)")


def _discards(command: Command) -> bool:
    """Follow stdout and stderr through the redirections, in their order."""
    targets = {"1": "", "2": ""}
    for redirect in command.redirects:
        target = redirect.target.text or ""
        if redirect.operator in ("&>", "&>>") or (
            redirect.operator == ">&" and not redirect.fd and not target.isdigit()
        ):
            targets["1"] = targets["2"] = target
        elif redirect.operator == ">&":
            targets[redirect.fd or "1"] = targets.get(target, "")
        elif redirect.operator in (">", ">>", ">|"):
            targets[redirect.fd or "1"] = target
    return targets["2"] == "/dev/null"


@rule(
    "tee-without-pipe",
    "error",
    what="`tee` stands where nothing is piped into it.",
    why="It does not see the launcher's output: it waits on stdin, or writes an empty log.",
    remedy="Write `COMMAND 2>&1 | tee LOG` with `set -o pipefail` before it.",
    bad="srun python train.py && tee train.log",
    good="set -o pipefail\nsrun python train.py 2>&1 | tee train.log",
)
def tee_without_pipe(context: Context) -> Iterator[Found]:
    """Find tee at the head of a pipeline without an input of its own."""
    for command in context.script.commands:
        inputs = any(redirect.operator.startswith("<") for redirect in command.redirects)
        inside = command.function or (command.block and command.before not in ("&&", "||"))
        if command.name == "tee" and not command.piped_in and not inputs and not inside:
            behind = f" behind {command.before}" if command.before in ("&&", "||") else ""
            yield Found(command.line, f"tee{behind} gets nothing: no pipe leads into it")


@rule(
    "set-option-misspelt",
    "error",
    what="An option of `set` is misspelt.",
    why="`set -errext` is a row of letters to bash, -e -r -r -e -x -t: `t` ends the script behind the next"
    " command, silently and with status 0; `-n`, in `-nounset`, runs nothing at all.",
    remedy="Write `set -e -u -o pipefail`, or `set -o errexit -o nounset -o pipefail`.",
    bad="set -errext -nounset -o pipefail",
    good="set -e -u -o pipefail",
    fixable=True,
)
def set_option_misspelt(context: Context) -> Iterator[Found]:
    """Find long names behind one dash, unknown names behind -o, and letters that set does not know."""
    for command in context.script.commands:
        if command.name == "set":
            yield from _set_words(command.words[1:])
    if context.script.shebang.split("/")[-1].startswith(("bash -", "sh -")):
        for text in context.script.shebang.split()[1:]:
            if right := _right_option(text):  # bash knows letters that set does not, such as -l
                yield Found(
                    1, f"#! line: {text} is misspelt, bash reads it letter by letter", f"write {right}"
                )


def _set_words(words: list[Word]) -> Iterator[Found]:
    named = False
    for word in words:
        text = word.text
        if text is None or text == "--":
            return
        if named:
            named = False
            if text not in _SET_NAMES:
                near = get_close_matches(text, _SET_NAMES, n=1)
                edits = (Edit(word.start, word.end, near[0]),) if near else ()
                meant = f"write -o {near[0]}" if near else None
                yield Found(word.line, f"set -o {text}: there is no such option", meant, edits=edits)
            continue
        if text[:1] not in "-+" or len(text) < 2:
            return
        if (right := _right_option(text)) is not None:
            edits = (Edit(word.start, word.end, right),) if right else ()
            meant = f"write {right}" if right else None
            yield Found(
                word.line, f"set {text}: misspelt, bash reads it letter by letter", meant, edits=edits
            )
        else:
            named = text[1:].endswith("o")


def _right_option(text: str) -> str | None:
    """Return what a misspelt option was meant to be, empty where unknown; None where it is right."""
    sign, name = text[:1], text[1:].lstrip("-")
    letters = set(text[1:])
    near = get_close_matches(name.lower(), _SET_NAMES, n=1, cutoff=0.75) if len(name) >= 4 else []
    if near:
        letter = _SET_LETTERS.get(near[0])
        return f"{sign}{letter[1:]}" if letter else f"{sign}o {near[0]}"
    return None if text.startswith(("-", "+")) and letters <= _SET_VALID else ""
