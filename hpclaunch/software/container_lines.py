"""A container around each rank's program: what it sees of the node, and the words that start it. Pure.

Singularity and Apptainer see, in their usual configuration, the home folder and /tmp, and the working folder
only if no part of its path is a link (apptainer.org/docs/user, "Bind Paths and Mounts"). So the job's folders
are bound: under the real path, which the kernel reports, and under the name of a link, which people use.
LUMI's /scratch/PROJECT and /project/PROJECT are such links (docs.lumi-supercomputer.eu, container jobs).
"""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Iterator

from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.job_environment import JobContainer
from hpclaunch.site.schema import SiteProfile
from hpclaunch.software.shell_quoting import continued, double_quote

ENGINE = "container-engine"
"""The runtime of CSCS: srun --environment=FILE, where FILE is a TOML file (EDF)."""
BIND_VARIABLE = {"singularity": "SINGULARITY_BIND", "apptainer": "APPTAINER_BIND"}
_EDF = '"$HPCLAUNCH_JOB_FOLDER/container.toml"'


def runtime_of(profile: SiteProfile) -> str:
    """Return the program that starts containers at the site."""
    site = profile.software.container
    return "apptainer" if site is None or site.runtime == "none" else site.runtime


def container_lines(container: JobContainer, profile: SiteProfile) -> Iterator[Line]:
    """Yield the lines before the launch: the site's modules, and what the container sees."""
    runtime = runtime_of(profile)
    if container.site_modules:
        yield from module_lines(profile)
    if runtime == ENGINE:
        yield from _definition(container, profile)
    else:
        yield from bind_lines(BIND_VARIABLE[runtime], container.binds, profile)


def module_lines(profile: SiteProfile) -> Iterator[Line]:
    """Yield the lines that load the site's runtime and what it needs."""
    site = profile.software.container
    for text in site.modules if site else ():
        yield Line(text=text, reason="what the site's containers need")


def bind_lines(variable: str, binds: tuple[str, ...], profile: SiteProfile) -> Iterator[Line]:
    """Yield the lines that add to the runtime's variable of binds; what modules put there is kept."""
    site = profile.software.container
    reason = "in the container: MPI and fabric of the site"
    if fixed := tuple(bind for bind in site.binds if not bind.startswith("$")) if site else ():
        yield _bind(variable, fixed, reason)
    if moved := [double_quote(bind) for bind in site.binds if bind.startswith("$")] if site else []:
        does = ["do", "[", "-z", '"${bind%%:*}"', "]", "||", f"{variable}+=,$bind;", "done"]
        text = continued("for", "bind", "in", *moved[:-1], f"{moved[-1]};", *does)
        yield Line(text=text, reason="those of modules that are loaded")
    yield Line(
        text=_each_folder(
            profile,
            "[,:]",
            f'{variable}+=,$real$([ "$real" = "$folder" ] || echo ",$real:$folder")',
        )
        + f"\nexport {variable}=${{{variable}#,}}",
        reason="and folders that are there; where a name is a link, under both names",
    )
    if binds:
        yield _bind(variable, binds, "in the container: what the job names")


def _bind(variable: str, binds: tuple[str, ...], reason: str) -> Line:
    return Line(text=f"{variable}+={double_quote(',' + ','.join(binds))}", reason=reason)


def _each_folder(profile: SiteProfile, bad: str, action: str) -> str:
    """Return a shell loop that acts on each folder of the job, ``$folder``, and its real path, ``$real``.

    ``bad``: the characters that a path in the runtime's list cannot have, as a shell pattern.
    """
    said = "a comma or colon" if "," in bad else "a colon"
    return continued("for", "folder", "in", *_folders(profile)[:-1], '"$PWD";', "do") + (
        '\n  real=$(readlink -e -- "$folder") && [ "$real" != / ] || continue\n'
        f'  case $folder$real in *{bad}*) echo "hpclaunch: {said} keeps $folder out" >&2; continue ;; esac\n'
        f"  {action}\n"
        "done"
    )


def _folders(profile: SiteProfile) -> list[str]:
    """Return shell words: the folders that a container sees. Runtimes bind the home folder themselves."""
    storage = [double_quote(each.path) for name, each in profile.storage.items() if name != "home"]
    return [*storage, '"$HPCLAUNCH_JOB_FOLDER"', '"$HPCLAUNCH_FILES"', '"$PWD"']


# --- the container engine of CSCS --------------------------------------------------------------------------


def _definition(container: JobContainer, profile: SiteProfile) -> Iterator[Line]:
    """Yield the lines that write the job's own definition (EDF) for an image, or on top of the user's.

    Facts: docs.cscs.ch/software/container-engine: mounts of a definition are added to those of its base; a
    definition sees no other folders; relative paths begin with ./; ``$${`` stands for ``${``.
    """
    yield Line(
        text='toml() { sed \'s/[\\\\"]/\\\\&/g; s/[$]{/$${/g; s/.*/"&"/\' <<< "$1"; }',
        reason="a text as a TOML string, in which the container engine expands nothing",
    )
    key, value = _image(container.image)
    loop = _each_folder(
        profile,
        ":",
        '[ "$real" = "$folder" ] || echo "$(toml "$real:$folder"),"\n  echo "$(toml "$real:$real"),"',
    )
    named = "".join(f'  echo "$(toml {double_quote(_mount(bind))}),"\n' for bind in container.binds)
    notes = profile.software.container.annotations if profile.software.container else {}
    annotated = ("[annotations]", *(f"{name} = {_toml(text)}" for name, text in notes.items()))
    lines = continued("  printf", "'%s\\n'", *map(shlex.quote, annotated), width=100)
    tail = f"{lines}\n" if notes and key == "image" else ""
    yield Line(
        text='[ -z "${HPCLAUNCH_JOB_FOLDER:-}" ] || {\n'  # in a check there is none
        f'  printf \'%s\\n\' "{key} = $(toml {value})" "workdir = $(toml "$PWD")" \'mounts = [\'\n'
        f"{textwrap.indent(loop, '  ')}\n"
        f"{named}"
        "  echo ']'\n"
        f"{tail}"
        f"}} > {_EDF}",
        reason="the container's definition: the image or the given definition, and the job's folders in it",
    )


def _image(image: str) -> tuple[str, str]:
    """Return key and value (shell text) of the image, or of the definition that is given."""
    if image.endswith(".toml"):
        return "base_environment", double_quote(image if re.match(r"[/.~$]", image) else f"./{image}")
    is_address = re.search(r"[/:#$]", image) or image.endswith((".sqsh", ".squashfs"))
    if not is_address:
        return "base_environment", double_quote(image)  # the name of a definition in EDF_PATH
    # docker://REGISTRY/NAME is REGISTRY#NAME there, and without a registry it is Docker Hub's.
    return "image", double_quote(re.sub(r"^docker://(?:([^/#]+\.[^/#]+)/)?", _registry, image))


def _registry(address: re.Match[str]) -> str:
    return f"{address[1]}#" if address[1] else ""


def _mount(bind: str) -> str:
    return bind if ":" in bind else f"{bind}:{bind}"


def _toml(text: str) -> str:
    return json.dumps(text)  # of plain text TOML's strings are those of JSON


# --- the words that start it -------------------------------------------------------------------------------


def in_container(container: JobContainer, profile: SiteProfile, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that each rank runs, inside the container.

    Binds are set in the environment, so their variables are expanded once. For CSCS' container engine nothing
    is added: see ``launch_options``.
    """
    inside = argv
    first = [container.activate] if container.activate else []
    if container.venv:
        first.append(f"source {double_quote(container.venv + '/bin/activate')}")
    if first:
        inside = ("bash", "-c", " && ".join([*first, 'exec -- "$@"']), "venv", *argv)
    runtime = runtime_of(profile)
    if runtime == ENGINE:
        return inside
    flags = gpu_flag(profile, container.gpu)
    if "$" not in container.image and not container.image.startswith("~/"):
        return (runtime, "exec", *flags, container.image, *inside)
    start = " ".join(["exec", runtime, "exec", *flags, double_quote(container.image), '"$@"'])
    return ("bash", "-c", start, "container", *inside)


def gpu_flag(profile: SiteProfile, requested: bool | None) -> tuple[str, ...]:
    """Return the site's flag if its nodes have GPUs; LUMI needs none, its configuration binds the devices."""
    site, node = profile.software.container, profile.node
    has_gpus = bool(node and node.gpus)
    if requested is False or (requested is None and not has_gpus):
        return ()
    if site is not None:
        return (site.gpu_flag,) if site.gpu_flag else ()
    flag = {"nvidia": "--nv", "amd": "--rocm"}.get((node.gpu_vendor or "") if node else "")
    return (flag,) if flag else ()


def launch_option(profile: SiteProfile) -> tuple[str, ...]:
    """Return the launcher's option that starts ranks in a container; empty: the rank's command does it."""
    return (f"--environment={_EDF}",) if runtime_of(profile) == ENGINE else ()
