"""EESSI: which CPU and accelerator target its detection chooses, and the lines that initialise it.

Facts: EESSI/software-layer-scripts, init/arch_specs/*.spec and init/eessi_archdetect.sh; EESSI docs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.job_header import Line
from hpclaunch.site.job_environment import JobEessi
from hpclaunch.software.shell_quoting import word

REPOSITORY = "/cvmfs/software.eessi.io"
TOOLCHAINS = {"2023.06": ("2022b", "2023a", "2023b"), "2025.06": ("2024a", "2025a", "2025b")}
"""Version -> generations of foss in it (EESSI docs, available software)."""
CONTAINER_IMAGE = "docker://ghcr.io/eessi/build-node:debian12"
"""eessi_container.sh's default image."""

# (target, vendor, flags that must all be there), from general to specific: the last that fits is chosen.
_SKYLAKE = "avx2 fma avx512f avx512bw avx512cd avx512dq avx512vl"
_X86 = (
    ("intel/haswell", "GenuineIntel", "avx2 fma"),
    ("intel/skylake_avx512", "GenuineIntel", _SKYLAKE),
    ("intel/cascadelake", "GenuineIntel", f"{_SKYLAKE} avx512_vnni"),
    ("intel/icelake", "GenuineIntel", f"{_SKYLAKE} avx512_vnni avx512_vbmi2"),
    ("intel/sapphirerapids", "GenuineIntel", f"{_SKYLAKE} avx512_bf16 amx_tile"),
    ("amd/zen2", "AuthenticAMD", "avx2 fma"),
    ("amd/zen3", "AuthenticAMD", "avx2 fma vaes"),
    ("amd/zen4", "AuthenticAMD", "avx2 fma vaes avx512f avx512ifma"),
    ("amd/zen5", "AuthenticAMD", "avx2 fma vaes avx512f avx512ifma avx512_vp2intersect avx_vnni movdiri"),
)
_ARM = (
    ("a64fx", "0x46", "asimdhp sve"),
    ("neoverse_n1", "0x41", "asimddp"),
    ("neoverse_v1", "0x41", "asimddp svei8mm"),
    ("nvidia/grace", "0x41", "sve2 sm3 sm4 svesm4"),
    ("google/axion", "0x41", "sve2 rng sm3 sm4 svesm4"),
)
_ACCELERATOR = re.compile(r"accel/(nvidia/cc[0-9]+|amd/gfx[0-9a-f]+)")


def cpu_target(cpuinfo: str, machine: str) -> str:
    """Return EESSI's target for a ``/proc/cpuinfo`` and a ``uname -m``, such as ``x86_64/amd/zen3``."""
    vendor_key, flags_key, table = {
        "x86_64": ("vendor_id", "flags", _X86),
        "aarch64": ("CPU implementer", "Features", _ARM),
    }.get(machine, ("", "", ()))
    vendor, flags = _last(cpuinfo, vendor_key), set(_last(cpuinfo, flags_key).split())
    chosen = "generic"
    for target, of_vendor, needed in table:
        if vendor == of_vendor and flags.issuperset(needed.split()):
            chosen = target
    return f"{machine}/{chosen}"


def _last(cpuinfo: str, key: str) -> str:
    """Return the value of a key's last line."""
    values = re.findall(rf"^{re.escape(key)}[ \t]*:[ \t]*(.*?)[ \t]*$", cpuinfo, re.MULTILINE | re.IGNORECASE)
    return str(values[-1]) if values and key else ""


def accelerator_target(gpu_arch: str | None) -> str | None:
    """Return the accelerator target: sm_90 -> accel/nvidia/cc90, gfx90a -> accel/amd/gfx90a."""
    if gpu_arch is None:
        return None
    if match := re.fullmatch(r"sm_(\d+)a?", gpu_arch):
        return f"accel/nvidia/cc{match[1]}"
    return f"accel/amd/{gpu_arch}" if re.fullmatch(r"gfx[0-9a-f]+", gpu_arch) else None


def init_lines(eessi: JobEessi, site_modules: Iterable[str]) -> tuple[Line, ...]:
    """Return the lines that make EESSI's modules available; raises BadInputError for targets of another form.

    ``site_modules``: the site's own modules for it; where one is ``EESSI/VERSION`` it is loaded as it is.
    """
    version = eessi.version
    if not re.fullmatch(r"\d{4}\.\d{2}", version):
        raise BadInputError(f"eessi version {version!r}", "right: 2023.06 or 2025.06")
    lines = list(_overrides(eessi))
    module = f"EESSI/{version}"
    # autofs mounts on access: a test of the folder above would not.
    lines.append(
        Line(text=f"ls {REPOSITORY} > /dev/null", reason="EESSI must be mounted here; access mounts it")
    )
    if eessi.init == "shell":
        lines.append(
            Line(
                text=f"source {REPOSITORY}/versions/{version}/init/lmod/bash",
                reason=f"EESSI {version}, with its own Lmod",
            )
        )
    elif module in site_modules:
        lines.append(Line(text=f"module load {module}", reason=f"EESSI {version}, the site's module"))
    else:
        lines += [
            Line(
                text='[ -z "$MODULEPATH" ] || module unuse "$MODULEPATH"',
                reason="EESSI's modules beside the site's would mix two stacks (EESSI docs)",
            ),
            Line(text=f"module use {REPOSITORY}/init/modules", reason="where EESSI keeps its own module"),
            Line(text=f"module load {module}", reason=f"EESSI {version}"),
        ]
    return tuple(lines)


def _overrides(eessi: JobEessi) -> Iterable[Line]:
    if eessi.cpu_target is not None:
        known = {f"x86_64/{t}" for t, *_ in _X86} | {f"aarch64/{t}" for t, *_ in _ARM}
        known |= {"x86_64/generic", "aarch64/generic"}
        if eessi.cpu_target not in known:
            raise BadInputError(
                f"eessi cpu_target {eessi.cpu_target!r} is none of EESSI's",
                f"known: {', '.join(sorted(known))}",
            )
        yield Line(
            text=f"export EESSI_SOFTWARE_SUBDIR_OVERRIDE={eessi.cpu_target}",
            reason="this CPU target instead of the detected one",
        )
    if eessi.accelerator is not None:
        if not _ACCELERATOR.fullmatch(eessi.accelerator):
            raise BadInputError(
                f"eessi accelerator {eessi.accelerator!r}", "right: accel/nvidia/cc90 or accel/amd/gfx90a"
            )
        yield Line(
            text=f"export EESSI_ACCELERATOR_TARGET_OVERRIDE={eessi.accelerator}",
            reason="this accelerator target instead of what nvidia-smi says",
        )


def container_words(
    eessi: JobEessi, *, nvidia: bool, binds: tuple[str, ...], argv: tuple[str, ...]
) -> tuple[str, ...]:
    """Return ``eessi_container.sh`` (EESSI/software-layer-scripts) around a command."""
    words = ["eessi_container.sh", "--mode", "run", "--repository", "software.eessi.io"]
    if nvidia:
        words += ["--nvidia", "run"]
    if binds:
        words += ["--extra-bind-paths", ",".join(map(word, binds))]
    return (*words, "--", *argv)
