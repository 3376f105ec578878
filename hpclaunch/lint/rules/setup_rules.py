"""Rules about the environment of programs: conda, virtual environments, containers."""

import re
from collections.abc import Iterator

from hpclaunch.lint.batch_script import Script
from hpclaunch.lint.lint_rule import Context, Violation, rule
from hpclaunch.lint.program_words import program_words
from hpclaunch.lint.rules.module_rules import ever_loaded
from hpclaunch.shell.shell_syntax import Command

_VENV = re.compile(r".*(^|/)bin/activate")
_BRINGS_CONDA = re.compile(r"(?i)conda|mamba|forge|py|torch|tensorflow|learn|jupyter|^(ai|ml|dl|nlp)\b")
_CONTAINER = re.compile(r"\b(?:singularity|apptainer) (?:\S+ )*?(?:exec|run|shell) (.*)")
_USES_GPU = re.compile(r"(?i)\b(cuda|gpus?|nvidia-smi)\b|\bpython|torchrun|\btrain")
_HAS_GPU = re.compile(r"(?i)--(nv|nvccli|rocm|oci|cleanenv-nv)\b|nvidia|libcuda|/dev\b|/usr/local/cuda")


@rule("activation-without-effect")
def activation_without_effect(context: Context) -> Iterator[Violation]:
    """Find virtual environments that conda's command, or a process of its own, is to activate."""
    for one in context.script.commands:
        words = [word.visible for word in one.words[:3]]
        by_conda = words[:2] in (["source", "activate"], [".", "activate"], ["conda", "activate"])
        if by_conda and _VENV.fullmatch("".join(words[2:])):
            message = f"{' '.join(words)}: conda has no environment of this name; it is a script of venv"
            yield Violation(one.line, message, f"write source {words[2]}")
        elif words[:1] in (["bash"], ["sh"]) and len(words) > 1 and _VENV.fullmatch(words[1]):
            message = f"{' '.join(words[:2])}: a shell of its own is activated, which then ends"
            yield Violation(one.line, message, f"write source {words[1]}")


@rule("conda-not-set-up")
def conda_not_set_up(context: Context) -> Iterator[Violation]:
    """Find the first ``conda activate`` in a shell in which nothing has defined conda's function."""
    script = context.script
    if (
        script.language not in ("bash", "sh")
        or script.reader is None
        or _BRINGS_CONDA.search(_modules(script))
    ):
        return
    if re.search(r"\s-\w*[li]|--login", script.shebang) or "hook" in script.text:
        return
    for one in script.commands:
        if one.name in (".", "source", "eval") or _defines_conda(one):
            return
        if [word.visible for word in one.words[:2]] == ["conda", "activate"]:
            yield Violation(
                one.line, "conda activate: nothing before it makes conda a function of this shell"
            )
            return


def _modules(script: Script) -> str:
    return " ".join(ever_loaded(script))


def _defines_conda(command: Command) -> bool:
    """Tell whether a command is in a function of the script, or may bring conda's own."""
    restores = command.name in ("module", "ml") and any(word.visible == "restore" for word in command.words)
    return restores or command.function


@rule("container-without-gpu")
def container_without_gpu(context: Context) -> Iterator[Violation]:
    """Find containers that run a program for GPUs and get none, in scripts that give a GPU to none."""
    requested, script = context.requested, context.script
    asks = requested.gpus or requested.gpus_per_node or requested.gpus_per_task
    if re.search(r"(SINGULARITY|APPTAINER)_NV\b|(?i:rocm|mi[23]\d\d|\bhip)", script.text):
        return
    if context.node and context.node.gpu_vendor != "nvidia":
        return
    found = [
        (launch, _CONTAINER.search(" ".join(program_words(script, launch)))) for launch in script.launches
    ]
    within = [(launch, match[0]) for launch, match in found if match]
    if any(_HAS_GPU.search(text) or "$" in text.split(" exec ")[0] for _, text in within):
        return
    for launch, text in within:
        program = re.sub(r"\S*\.(sif|simg|img)\b|(^| )\S+=\S*", " ", text)
        if re.search(r"(?i)(^|[ =])cuda(:\d)?( |$)", program) or (asks and _USES_GPU.search(program)):
            yield Violation(launch.line, "the container is started without --nv: its program finds no GPU")
            return
