"""A container around each rank's program: what it sees of the node, and the words that start it. Pure.

Singularity and Apptainer see, in their usual configuration, the home folder and /tmp, and the working folder
only if no part of its path is a link (apptainer.org/docs/user, "Bind Paths and Mounts"). So the job's folders
are bound: under the real path, which the kernel reports, and under the name of a link, which people use.
LUMI's /scratch/PROJECT and /project/PROJECT are such links (docs.lumi-supercomputer.eu, container jobs).
"""

import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from typing import Literal

import msgspec

from hpclaunch.errors import note_text
from hpclaunch.package_data import package_constants, text_beside
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.schema import Container, Environment, JobContainer, SiteProfile
from hpclaunch.software.script_lines import continued, double_quote, line, literal


class Runtime(msgspec.Struct, frozen=True, kw_only=True):
    """One program, or one option of the launcher."""

    sources: tuple[str, ...]
    start: Literal["exec", "shifter", "podman", "pyxis", "engine"]
    binds: str = ""
    pairs: bool = False
    verbs: tuple[str, ...] = ()
    flags: frozenset[str] = frozenset()
    binds_by: tuple[str, ...] = ()
    image_by: tuple[str, ...] = ()
    overrides: bool = False
    gpu: dict[str, str] = {}
    refused: str = r"(?!)"
    instead: str = ""


ENGINE = "container-engine"
"""The runtime of CSCS: srun --environment=FILE, where FILE is a TOML file (EDF)."""
RUNTIMES = msgspec.json.decode(text_beside(__file__, "container_runtimes.json"), type=dict[str, Runtime])
"""Name, as profiles and ``--container-runtime`` have it -> what it needs."""


def documented(profile: SiteProfile) -> dict[str, Container]:
    """Return the runtimes that a site documents, the usual one first."""
    site = profile.software.container
    if site is None or site.runtime == "none":
        return {}
    also: dict[str, Container] = {each.runtime: each for each in profile.software.other_containers}
    return {site.runtime: site, **also, site.runtime: site}


def runtime_of(profile: SiteProfile, container: JobContainer | None = None) -> str:
    """Return the name of the runtime of a job: the one that it names, else the site's, else Apptainer."""
    if container is not None and container.runtime is not None:
        return container.runtime
    return next(iter(documented(profile)), "apptainer")


def facts_of(profile: SiteProfile, container: JobContainer | None = None) -> Container | None:
    """Return what the site documents about the runtime of a job."""
    return documented(profile).get(runtime_of(profile, container))


def is_guessed(profile: SiteProfile, container: JobContainer) -> str | None:
    """Return a note where no page was found that states the runtime of a job's container."""
    name = runtime_of(profile, container)
    if facts_of(profile, container) is not None:
        return None
    why = "" if container.runtime else "; --container-runtime names another one"
    return f"no container runtime is documented for {profile.name}: the script starts {name}{why}"


def undocumented(profile: SiteProfile, container: JobContainer) -> str | None:
    """Return why the site cannot start a job's container, by what its profile knows; None: it can.

    Where nothing is known the runtime that the job names counts, and on a machine that no profile describes
    Apptainer where it names none.
    """
    name, launcher = runtime_of(profile, container), profile.scheduler.launcher
    return _unknown_runtime(profile, container) or _unfit(container, name, launcher)


def _unfit(container: JobContainer, name: str, launcher: str) -> str | None:
    """Return why a runtime cannot take an image, the binds of a job, or the launcher."""
    fits = RUNTIMES[name]
    if re.fullmatch(fits.refused, container.image):
        instead = f"; {fits.instead}" if fits.instead else ""
        return f"container: image: {container.image} cannot be started by {name}{instead}"
    if fits.pairs and any("," in bind for bind in container.binds):
        return f"container: binds: {name} separates them by commas, so none may have one in its name"
    if fits.start in ("pyxis", "engine") and launcher != "srun":
        return f"container: {name} is an option of srun, and ranks are started by {launcher} here"
    return None


def _unknown_runtime(profile: SiteProfile, container: JobContainer) -> str | None:
    """Return that a site has not the runtime, or that none is known there."""
    known, name, site = documented(profile), runtime_of(profile, container), profile.software.container
    if site is not None and site.runtime == "none":
        return f"container: {profile.name} has no container runtime"
    if known and name not in known:
        return f"container: {profile.name} has {' and '.join(known)}, not {name}"
    if known or container.runtime is not None or profile.status != "production":
        return None
    return note_text("container: no runtime", profile=profile, runtimes=", ".join(RUNTIMES))


_WORD = package_constants("software/forms.json", "containers")


def container_lines(container: JobContainer, profile: SiteProfile) -> Iterator[Line]:
    """Yield the lines before the launch: the site's modules, and what the container sees."""
    name, site = runtime_of(profile, container), facts_of(profile, container)
    runtime = RUNTIMES[name]
    if container.site_modules:
        yield from module_lines(profile, container)
    if name == ENGINE:
        yield from _definition(container, profile)
    elif runtime.binds and site and site.binds_storage and container.site_modules:
        if container.binds:
            yield _bind(runtime.binds, container.binds, "in the container: what the job names")
    elif runtime.binds:
        yield from bind_lines(runtime.binds, container.binds, profile, site, pairs=runtime.pairs)


def module_lines(profile: SiteProfile, container: JobContainer | None = None) -> Iterator[Line]:
    """Yield the lines that load the site's runtime and what it needs."""
    site = facts_of(profile, container)
    for text in site.modules if site else ():
        yield Line(text=text, reason="what the site's containers need")


def bind_lines(
    variable: str,
    binds: tuple[str, ...],
    profile: SiteProfile,
    site: Container | None,
    *,
    pairs: bool = False,
) -> Iterator[Line]:
    """Yield the lines that add to the runtime's variable of binds; what modules put there is kept.

    ``site``: what the site documents about the runtime; ``pairs``: each bind names its place, too.
    """
    yield from _of_site(variable, tuple(map(_mount, site.binds) if pairs else site.binds) if site else ())
    real = "$real:$real" if pairs else "$real"
    yield Line(
        text=_each_folder(
            profile, "[,:]", f'{variable}+=,{real}$([ "$real" = "$folder" ] || echo ",$real:$folder")'
        )
        + f"\nexport {variable}=${{{variable}#,}}",
        reason="and folders that are there; where a name is a link, under both names",
    )
    if binds:
        named = tuple(map(_mount, binds)) if pairs else binds
        yield _bind(variable, named, "in the container: what the job names")


def _of_site(variable: str, binds: tuple[str, ...]) -> Iterator[Line]:
    """Yield the lines for the site's binds; those that begin with a variable, only where a module set it."""
    if fixed := tuple(bind for bind in binds if not bind.startswith("$")):
        yield _bind(variable, fixed, "in the container: MPI and fabric of the site")
    if moved := [double_quote(bind) for bind in binds if bind.startswith("$")]:
        does = ["do", "[", "-z", '"${bind%%:*}"', "]", "||", f"{variable}+=,$bind;", "done"]
        text = continued("for", "bind", "in", *moved[:-1], f"{moved[-1]};", *does)
        yield Line(text=text, reason="those of modules that are loaded")


def _bind(variable: str, binds: tuple[str, ...], reason: str) -> Line:
    return Line(text=f"{variable}+={double_quote(',' + ','.join(binds))}", reason=reason)


def _each_folder(profile: SiteProfile, bad: str, action: str) -> str:
    """Return a loop over the job's folders, ``$folder``, in full ``$real``; ``bad``: signs of no path."""
    said = "a comma or colon" if "," in bad else "a colon"
    storage = [double_quote(each.path) for name, each in profile.storage.items() if name != "home"]
    folders = [*storage, '"$HPCLAUNCH_JOB_FOLDER"', '"$HPCLAUNCH_FILES"', '"$PWD";']
    return continued("for", "folder", "in", *folders, "do") + (
        '\n  real=$(readlink -e -- "$folder") && [ "$real" != / ] || continue\n'
        f'  case $folder$real in *{bad}*) echo "hpclaunch: {said} keeps $folder out" >&2; continue ;; esac\n'
        f"  {action}\n"
        "done"
    )


def _definition(container: JobContainer, profile: SiteProfile) -> Iterator[Line]:
    """Yield the lines that write the job's own definition (EDF) for an image, or on top of the user's.

    Facts: docs.cscs.ch/software/container-engine: mounts of a definition are added to those of its base; a
    definition sees no other folders; relative paths begin with ./; ``$${`` stands for ``${``.
    """
    yield line("toml")
    key, value = _image(container.image)
    loop = _each_folder(
        profile,
        ":",
        '[ "$real" = "$folder" ] || echo "$(toml "$real:$folder"),"\n  echo "$(toml "$real:$real"),"',
    )
    named = "".join(f'  echo "$(toml {double_quote(_mount(bind))}),"\n' for bind in container.binds)
    facts = facts_of(profile, container)
    notes = facts.annotations if facts else {}
    # Of plain text TOML's strings are those of JSON.
    annotated = ("[annotations]", *(f"{name} = {json.dumps(text)}" for name, text in notes.items()))
    lines = continued("  printf", "'%s\\n'", *map(shlex.quote, annotated), width=100)
    tail = f"{lines}\n" if notes and key == "image" else ""
    facts_of_job = {"key": key, "value": value, "named": named, "tail": tail, "file": _WORD.edf}
    yield line("container definition", loop=textwrap.indent(loop, "  "), **facts_of_job)


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


def in_container(container: JobContainer, profile: SiteProfile, argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command that each rank runs, inside the container.

    Binds are set in the environment, so their variables are expanded once. For CSCS' container engine and
    pyxis nothing is added: see ``launch_options``.
    """
    first = [container.activate] if container.activate else []
    if container.venv:
        first.append(f"source {double_quote(container.venv + '/bin/activate')}")
    inside = ("bash", "-c", " && ".join([*first, 'exec -- "$@"']), "venv", *argv) if first else argv
    name = runtime_of(profile, container)
    kind, flags = RUNTIMES[name].start, gpu_flag(profile, container)
    image = _address(container.image, kind)
    if kind in ("engine", "pyxis"):
        return inside
    if kind == "podman":
        facts = {"options": " ".join(map(literal, flags)), "image": double_quote(image)}
        return ("bash", "-c", line("podman", host=_WORD.of_the_host, **facts).text, "container", *inside)
    pairs = [("", word) for word in (name, "exec", *flags, image)]
    if kind == "shifter":
        pairs = _of_shifter(container, image, flags)
    return (*_expanded(pairs), *inside)


def _expanded(pairs: list[tuple[str, str]]) -> tuple[str, ...]:
    """Return words, each an option and its value; a shell stands before them where a value needs one."""
    if not any("$" in word or word.startswith("~/") for _, word in pairs):
        return tuple(option + word for option, word in pairs)
    start = " ".join(option + double_quote(word) for option, word in pairs)
    return ("bash", "-c", f'exec {start} "$@"', "container")


def _of_shifter(container: JobContainer, image: str, flags: tuple[str, ...]) -> list[tuple[str, str]]:
    """Return the words of Shifter, each option apart from its value.

    It mounts nothing onto a site's file system, where a folder that is bound under its own path is.
    """
    moved = (bind for bind in container.binds if bind.partition(":")[2] not in ("", bind.partition(":")[0]))
    volumes = (("--volume=", bind) for bind in moved)
    return [("", "shifter"), ("--image=", image), *(("", flag) for flag in flags), *volumes]


def _address(image: str, kind: str) -> str:
    """Return an image as its runtime names it.

    docker://REGISTRY/NAME is docker:REGISTRY/NAME for Shifter, REGISTRY/NAME for podman and REGISTRY#NAME for
    pyxis, to which a name without # is one of Docker Hub, and a file begins with / or a dot.
    """
    if kind == "pyxis" and re.search(r"^[^./].*\.(sqsh|squashfs)$", image):
        return f"./{image}" if image[0] not in "~$" else image
    if kind == "pyxis":
        return re.sub(r"^(?:docker://)?(?:([^./~$#:][^/#]*[.:][^/#]*)/(?!/))?", _registry, image)
    if kind in ("exec", "engine"):
        return image
    plain = re.sub(r"^([\w.:@-]+)#", r"\1/", image.removeprefix("docker://"))
    return f"docker:{plain}" if kind == "shifter" and image.startswith("docker://") else plain


def gpu_flag(profile: SiteProfile, container: JobContainer | None = None) -> tuple[str, ...]:
    """Return the site's options, and its flag if its nodes have GPUs; LUMI's own configuration binds them."""
    site, node = facts_of(profile, container), profile.node
    options = site.options if site else ()
    has_gpus = bool(node and node.gpus)
    if not (has_gpus if container is None or container.gpu is None else container.gpu):
        return options
    usual = RUNTIMES[runtime_of(profile, container)].gpu.get((node and node.gpu_vendor) or "")
    flag = site.gpu_flag if site else usual
    return (*options, flag) if flag else options


def launch_options(environment: Environment | None, profile: SiteProfile) -> tuple[str, ...]:
    """Return the launcher's options that start ranks in a container; empty: the rank's command does it."""
    container = environment.container if environment else None
    if container is None:
        return ()
    kind = RUNTIMES[runtime_of(profile, container)].start
    if kind == "engine":
        return (f"--environment={_WORD.edf}",)
    if kind != "pyxis":
        return ()
    image = double_quote(_address(container.image, kind))
    return (
        f"--container-image={image}",
        '--container-mounts="${HPCLAUNCH_BINDS#,}"',
        '--container-workdir="$PWD"',
        *map(literal, gpu_flag(profile, container)),
    )
