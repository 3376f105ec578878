"""Hostile text in every text field of a request or profile, and what a real bash makes of the script.

A script runs with programs that note how they were called in place of launchers, modules and containers. Its
directives are read as the scheduler reads them.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import msgspec

from hpclaunch.job.job_script import dry_run, job_files
from hpclaunch.job.prepare import Prepared
from hpclaunch.plan.plan_file import PLAN

KeyPath = tuple[str | int, ...]
KEY = "(name)"
"""In a path: the name of an entry of a mapping, not its value."""
MARK = "Marker7"
"""A text that every field takes which is free."""

_NOTES = """\
#!/bin/bash
trap '' USR1 TERM  # who is ended early has taken its note
note=$HOSTILE_NOTES/$EPOCHREALTIME-$$  # no process for a name: a script makes many calls
printf '%s\\0' "${0##*/}" "$@" > "$note"
case ${0##*/} in
  scontrol) echo n1 ;;
  flux) case $1 in hostlist) echo n1 ;; job) echo 77 ;; run) ;; *) exit 0 ;; esac ;;&
  singularity) if [ "$1" = pull ]; then : > "$2"; exit 0; fi ;;&
  srun | mpiexec | mpirun | jsrun | flux | singularity | apptainer | shifter | podman-hpc)
    while [ $# -gt 1 ] && [ "$1 $2" != 'bash -c' ]; do shift; done
    if [ $# -gt 1 ]; then exec "$@"; fi ;;
  program7 | "$HOSTILE_PROGRAM")
    mapfile -d '' -t variables < /proc/$$/environ
    printf '%s\\0' "${variables[@]}" > "$note.env" ;;
esac
exit 0
"""
# What the job's own shell calls, as functions of it: they take their notes without a process, as module does.
_FUNCTIONS = {
    "source": 'note source "$@"',
    "module": 'note module "$@"',
    "conda": 'note conda "$@"',
    "ls": 'note ls "$@"',
    "scontrol": 'note scontrol "$@"; echo n1',
    "note": 'printf \'%s\\0\' "$@" > "$HOSTILE_NOTES/$EPOCHREALTIME-$BASHPID"',
}
_PROGRAMS = (
    *("srun", "mpiexec", "mpirun", "jsrun", "flux", "scontrol", "module", "conda", "ls", "taskset"),
    *(
        "singularity",
        "apptainer",
        "shifter",
        "podman-hpc",
        "eessi_container.sh",
        "python3",
        "program7",
        "sbatch",
        MARK,
    ),
)
_CHANGING = {"_", "PWD", "OLDPWD", "SHLVL", "MASTER_PORT", "HOSTILE_PROGRAM"}
_SCHEDULERS_OWN = {
    "SLURM_JOB_ID": "77",
    "SLURM_JOB_NODELIST": "n1",
    "SLURM_PROCID": "0",
    "SLURM_LOCALID": "0",
    "PBS_JOBID": "77.server",
    "PALS_RANKID": "0",
    "PALS_LOCAL_RANKID": "0",
    "PMI_RANK": "0",
    "MPI_LOCALRANKID": "0",
    "FLUX_TASK_RANK": "0",
    "FLUX_TASK_LOCAL_ID": "0",
    "LSB_JOBID": "77",
    "LSB_HOSTS": "n1",
    "FLUX_ENCLOSING_ID": "f77",
    "SLURM_ARRAY_JOB_ID": "77",
    "SLURM_ARRAY_TASK_ID": "1",
}


def text_fields(wanted: Any, path: KeyPath = ()) -> Iterator[KeyPath]:
    """Yield the path of every text of a type; a mapping has one entry, ``K``, and a list one item."""
    wanted = get_args(wanted)[0] if get_origin(wanted) is Annotated else wanted
    if get_origin(wanted) in (Union, types.UnionType):
        for part in get_args(wanted):
            yield from text_fields(part, path)
    elif wanted is str:
        yield path
    elif get_origin(wanted) is dict:
        yield (*path, KEY)
        yield from text_fields(get_args(wanted)[1], (*path, "K"))
    elif get_origin(wanted) is tuple:
        yield from text_fields(get_args(wanted)[0], (*path, 0))
    elif (
        get_origin(wanted) is not Literal and isinstance(wanted, type) and issubclass(wanted, msgspec.Struct)
    ):
        for field in msgspec.structs.fields(wanted):
            yield from text_fields(field.type, (*path, field.encode_name))


def has(document: Any, path: KeyPath) -> bool:
    """Whether a document has a text at that path."""
    if not path:
        return isinstance(document, str)
    if path[0] == KEY:
        return bool(document)
    if isinstance(document, dict):
        return _key(document, path) in document
    return isinstance(document, list) and bool(document) and has(document[int(path[0])], path[1:])


def _key(document: dict[str, Any], path: KeyPath) -> Any:
    """Return the key that a path means: of a mapping from names the first whose value has the rest."""
    keys = document if path[0] == "K" else [path[0]]
    return next((key for key in keys if key in document and has(document[key], path[1:])), None)


def value_at(document: Any, path: KeyPath) -> str:
    """Return the text at a path that the document has."""
    if not path:
        return str(document)
    if path[0] == KEY:
        return str(next(iter(document)))
    key = _key(document, path) if isinstance(document, dict) else path[0]
    return value_at(document[key], path[1:])


def with_text(document: Any, path: KeyPath, text: str) -> Any:
    """Return a copy of the document with another text at the path."""
    if not path:
        return text
    if path[0] == KEY:
        first = next(iter(document))
        return {(text if key == first else key): value for key, value in document.items()}
    if isinstance(document, dict):
        at = _key(document, path)
        return {k: with_text(v, path[1:], text) if k == at else v for k, v in document.items()}
    return [with_text(v, path[1:], text) if n == path[0] else v for n, v in enumerate(document)]


class JobText(str):
    """A script followed by its ``plan.sh``, the two texts that a request changes; ``files``: all of them."""

    __slots__ = ("files", "script")
    files: dict[str, bytes]
    script: str

    @classmethod
    def of(cls, prepared: Prepared) -> JobText:
        """Return that of a prepared job."""
        plan, script = dry_run(prepared)
        files = job_files(plan)
        text = cls(script + files[PLAN].decode())
        text.files, text.script = files, script
        return text


class Bash:
    """Runs scripts with programs that take notes; ``canary`` exists if another command ran."""

    def __init__(self, folder: Path) -> None:
        self.programs, self.work = folder / "programs", folder / "work"
        self.canary = folder / "canary"
        self.home = folder / "home"
        self.programs.mkdir(parents=True)
        for name in _PROGRAMS:
            self._program(name)

    def _program(self, name: str) -> None:
        file = self.programs / name
        file.write_text(_NOTES)
        file.chmod(0o755)

    def observe(self, script: str, program: str | None = None) -> Counter[str]:
        """Run a script; return all calls, the variables of its program and its directives, each as text.

        ``program``: a further name of the program that each rank becomes.
        """
        if program and "/" not in program and len(program.encode()) < 255 and program not in ("", ".", ".."):
            self._program(program)
        notes = self.work / "notes"
        for folder in (self.work, self.home):
            if folder.exists():
                shutil.rmtree(folder)
        notes.mkdir(parents=True)
        self.home.mkdir()
        file = self.work / "script"
        file.write_text(script.script if isinstance(script, JobText) else script)
        if isinstance(script, JobText):
            for job in ("hpclaunch-77", "hpclaunch-f77"):
                for name, data in script.files.items():
                    (self.work / job / "files" / name).parent.mkdir(parents=True, exist_ok=True)
                    (self.work / job / "files" / name).write_bytes(data)
        places = {"SLURM_SUBMIT_DIR": self.work, "PBS_O_WORKDIR": self.work, "LS_SUBCWD": self.work}
        (self.work / "pbs_nodes").write_text("n1\n")
        environment = {
            **_SCHEDULERS_OWN,
            **{name: str(place) for name, place in places.items()},
            "PBS_NODEFILE": str(self.work / "pbs_nodes"),
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "HOME": str(self.home),
            "HOSTILE_NOTES": str(notes),
            "HOSTILE_PROGRAM": program or "",
            **{f"BASH_FUNC_{name}%%": f"() {{  {does}; }}" for name, does in _FUNCTIONS.items()},
        }
        said, code = _run_whole(file, self.work, environment)
        log = "".join(p.read_text(errors="replace") for p in self.work.glob("hpclaunch-*/**/out.log"))
        assert code == 0, f"exit {code}: {said[-800:]}{log[-800:]}\n{script[-3000:]}"
        assert not self.canary.exists(), f"another command ran:\n{script}"
        return Counter(self._calls(notes)) + Counter(directive_words(script))

    def _calls(self, notes: Path) -> Iterator[str]:
        for note in sorted(notes.iterdir()):
            words = note.read_bytes().decode().split("\0")[:-1]
            if note.suffix == ".env":
                yield from (
                    f"variable {re.sub('hpclaunch-f?[0-9]+(-[A-Za-z0-9]{12}(?=/))?', 'hpclaunch-N', word)}"
                    for word in words
                    if word.partition("=")[0] not in _CHANGING
                )
            else:
                # What a launcher or container starts, it starts here, too: that is seen in its own call.
                cut = next((n for n in range(len(words) - 1) if words[n : n + 2] == ["bash", "-c"]), None)
                if words[0] == "taskset" or "reader" in words[:3]:  # the last, or fifth, is a process id
                    words[-1 if words[0] == "taskset" else 5] = "PID"
                yield "call " + "\0".join(map(_same, words[:cut]))


def _run_whole(script: Path, work: Path, environment: dict[str, str]) -> tuple[str, int]:
    """Run a script; return its stderr and exit code, when nothing that it started runs any more.

    A sampler looks once a second whether its rank has ended, and would write into the next run's folder.
    """
    said = subprocess.PIPE
    with subprocess.Popen(
        ["/bin/bash", str(script)],
        cwd=work,
        env=environment,
        stdout=said,
        stderr=said,
        start_new_session=True,
    ) as run:
        try:
            _, errors = run.communicate(timeout=60)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(run.pid, signal.SIGKILL)
    return errors.decode(errors="replace"), run.returncode


def _same(word: str) -> str:
    """Return a word without what differs from run to run, and JSON as its plain texts."""
    word = re.sub(r"(staging|hpclaunch-eessi|part)\.\w{6}\b", r"\1.N", word)
    word = re.sub("hpclaunch-f?[0-9]+(-[A-Za-z0-9]{12}(?=/))?", "hpclaunch-N", word)
    try:
        values = json.loads(word)
    except ValueError:
        return word
    if not isinstance(values, dict):
        return word
    return "\1".join(
        str(v) for value in values.values() for v in (value if isinstance(value, list) else [value])
    )


def directive_words(script: str) -> Iterator[str]:
    """Yield the words of the directives: those lines that a scheduler takes for its own, anywhere."""
    for line in script.split("\n"):
        if match := re.match(r"#(SBATCH|PBS|BSUB|flux:)\s+(.*)", line, re.DOTALL):
            lexer = shlex.shlex(match[2], posix=True, punctuation_chars=False)
            lexer.whitespace_split, lexer.whitespace, lexer.commenters = True, " \t\r\n\v\f", "#"
            try:
                yield from (f"directive {word}" for word in lexer)
            except ValueError:
                yield f"directive line {match[2]}"


def without_comments(script: str) -> str:
    """Return the script without its comment lines; directives stay."""
    return "\n".join(
        line for line in script.split("\n") if not line.startswith("# ") or line.startswith("# flux:")
    )


def expanded(text: str, home: Path) -> str:
    """Return the text as a shell expands the variables of the tests in it."""
    text = re.sub(r"(^|[,:])~(?=/)", rf"\1{home}", text)
    return re.sub(r"\$(HOME\b|\{HOME\})", str(home), text)


def hostile_texts(canary: Path) -> list[str]:
    """Return texts that would run ``touch CANARY``, or be mangled, where they are not quoted."""
    touch = f"touch {canary}"
    return [
        f"x; {touch} #",
        f"$({touch})",
        f"`{touch}`",
        f"a\n{touch}\n#SBATCH --nodes=9\n#BSUB -x\n#PBS -A y\n#flux: -N9",
        f"$[a[$({touch})]]",
        f"${{x:=$({touch})}}${{x@P}}",
        f'it\'s "quoted" \\ && {touch} & | > < * ? ! {{a,b}}',
        f"\nHPCLAUNCH_RANK\n{touch}\n",
        "-rf",
        "--wrap=x",
        "-c",
        " two  blanks ",
        "caf\u00e9 \u202etxt.exe\u202c \u200f \u2028 \U0001f600",
        "nul\0byte",
        "lone \udcff surrogate",
        "tab\there \x1b[31m",
        "y" * 5000,
        "~/x:~/y $HOME ${HOME} $5 $$ $",
        "",
        "#",
        "%j",
        "{{x}}{% y %}",
    ]


def few_hostile_texts(canary: Path) -> list[str]:
    """Return fewer such texts, each with more in it, for the many fields of a profile."""
    each = hostile_texts(canary)
    return [each[0], each[1], each[3], each[4] + each[5] + each[2], each[6], each[10], each[12], "%j", "-x"]


def job_documents(site: str) -> list[dict[str, Any]]:
    """Return job files that together have every text of a request; ``K`` is not needed as a name."""
    program = {"site": site, "name": "job", "command": ["program7", MARK, "--deepspeed_config", "ds.json"]}
    software = {
        "module_use": [MARK],
        "modules": [MARK],
        "path": [MARK],
        "easybuild": {"prefix": MARK, "load": [MARK]},
        "eessi": {
            "version": "2023.06",
            "cpu_target": "x86_64/generic",
            "accelerator": "accel/nvidia/cc80",
            "load": [MARK],
            "extend": MARK,
        },
        "conda": MARK,
        "venv": MARK,
    }
    container = {"image": MARK, "binds": [MARK], "venv": MARK}
    eessi = {"version": "2023.06", "init": "container", "cache": MARK, "script": MARK}
    return [
        {
            **program,
            "name": MARK,
            "account": MARK,
            "queue": MARK,
            "time": "10m",
            "timeline": MARK,
            "python": MARK,
            "env": {"NAME": MARK},
            "space": [MARK],
            "preflight": True,
            "software": "site",
            "imports": [MARK],
            "environment": software,
        },
        {**program, "environment": {"container": container}},
        {**program, "environment": {"eessi": eessi}},
        {**program, "container": MARK, "container_bind": [MARK], "remote_dir": MARK},
        *(
            {**program, "container": MARK, "container_bind": [MARK], "container_runtime": name}
            for name in ("shifter", "podman-hpc", "pyxis")
            if name != "pyxis" or site == "generic-slurm"  # an option of srun
        ),
        {**program, "venv": MARK, "module": [MARK]},
        {**program, "conda": MARK, "module": [MARK]},
        {**program, "stage": [MARK]},
        {**program, "model": ["resnet50"]},
    ]


def slurm_documents(site: str) -> list[dict[str, Any]]:
    """Return job files with what only schedulers such as Slurm have."""
    program = {"site": site, "name": "job", "command": ["program7", "--deepspeed_config", MARK]}
    return [
        {**program, "mpi": MARK, "framework": "deepspeed", "zero_stage": 1, "array": "1-2"},
        {**program, "directives": ["--comment=x"], "exclude": ["n7"], "after": ["12"]},
        {**program, "memory": "10G", "begin": "2026-12-31T18:00"},
        {**program, "gpu_type": "a100", "gpus_per_task": 1},
        {**program, "max_restarts": 1, "time": "10m", "warn_before": "1m", "idle_timeout": "9m"},
    ]


def profile_documents() -> list[dict[str, Any]]:
    """Return profiles that together have every text of the schema."""
    slurm = _slurm_profile()
    scheduler = {"kind": "pbs", "launcher": "mpiexec", "select": MARK}
    mpi = {"plugin": None, "plugin_open": False}
    queues = {"main": {"kind": "queue"}}
    pbs = {**slurm, "extends": "generic-pbs", "scheduler": scheduler, "mpi": mpi, "queues": queues}
    container = _IN_CONTAINERS["container"]
    eessi = _IN_CONTAINERS["eessi"]
    software = slurm["software"]
    engine = {**software["container"], "runtime": "container-engine", "annotations": {MARK: MARK}}
    besides = [*software["other_containers"], {"runtime": "singularity"}]
    return [
        slurm,
        pbs,
        {**slurm, "environment": {"container": container}},
        {**slurm, "environment": {"eessi": eessi}},
        {**slurm, "software": {**software, "container": engine, "other_containers": besides}},
        {**slurm, "status": "historic", "retired": {"successor": MARK, "source": "s"}},
        {**{key: value for key, value in slurm.items() if key != "extends"}, "part_of": "generic-slurm"},
        {**slurm, "node_kind": "gh200x4", "node": {"gpu_type": MARK}},
    ]


_IN_CONTAINERS: dict[str, Any] = {
    "container": {"image": MARK, "binds": [MARK], "venv": MARK, "activate": "true"},
    "eessi": {"version": "2023.06", "init": "container", "cache": MARK, "script": MARK},
}


def _offer(environment: dict[str, Any], note: dict[str, Any]) -> dict[str, Any]:
    """Software of a site, with every text."""
    return {
        "environment": environment,
        "install": [MARK],
        "directives": [MARK],
        "env": {"NAME": MARK},
        "enter": MARK,
        "mpi": MARK,
        "versions": {MARK: MARK},
        "lacks": {MARK: MARK},
        **note,
    }


def _slurm_profile() -> dict[str, Any]:
    source = {"source": "s"}
    variable = {"value": MARK, "reason": MARK, **source}
    note = {"note": MARK, **source}
    lists = {key: [MARK] for key in ("binds", "images", "options")}
    container = {"gpu_flag": MARK, "cotainr": MARK, "modules": ["true"], **lists, **note}
    software = job_documents("")[0]["environment"]
    link = {"gb_s": 25.0, "kind": MARK, **note}
    return {
        "schema": 1,
        "name": "here",
        "description": MARK,
        "extends": "generic-slurm",
        "sources": {"s": {"url": "https://example.org/x", "checked": dt.date(2026, 11, 20), "note": MARK}},
        "scheduler": {
            "kind": "slurm",
            "launcher": "srun",
            "version": "24.05",
            "version_source": "s",
            **source,
        },
        "login": {"hosts": [MARK], "proxy_jump": MARK, **note},
        "detect": {
            "cluster_names": [MARK],
            "env": {"NAME": MARK},
            "hostnames": [MARK],
            "hostnames_unique": [MARK],
            "gpu_models": [MARK],
            "modules": [MARK],
            "modules_source": "s",
            **source,
        },
        "account": {"pattern": MARK, "example": MARK, **source},
        "queues": {
            MARK: {
                "min_walltime": "00:01:00",
                "max_walltime": "24:00:00",
                "routes": [{"name": MARK, "max_nodes": 9, "max_walltime": "24:00:00"}],
                **note,
            },
            "low": {"kind": "qos", "with_partition": "main"},
            "main": {"kind": "partition"},
        },
        "directives": [{"text": "--comment=x", "reason": MARK, **source}],
        "links": {"nic": link, "gpu_gpu": link, "cpu_gpu": link},
        "node": {
            "cpu_model": MARK,
            "cores": 4,
            "numa": [{"id": 0, "cores": "0-3"}],
            "l3_groups": ["0-3"],
            "reserved_cores": "0",
            "memory_request": MARK,
            "gpus": [{"numa": 0, "cores": "0-3", "bus_id": "0000:c1:00.0", "nic": "hsn0"}],
            "gpu_vendor": "amd",
            "gpu_model": MARK,
            "gpu_arch": MARK,
            "nics": [{"name": "hsn0"}],
            "local_scratch": MARK,
            **note,
        },
        "binding": {
            "cpu": "taskset",
            "gpu_visible_var": MARK,
            "cores_for": {MARK: {"cores": ["1-2"], "reason": MARK, **source}},
            "threads_for": {MARK: {"value": 1, "reason": MARK, **source}},
            **source,
        },
        "mpi": {
            "implementation": MARK,
            "plugin": MARK,
            "plugin_open": False,
            "alternatives": {MARK: MARK},
            **source,
        },
        "fabric": {
            "name_suffix": MARK,
            "network": {"layout": "fat-tree", **note},
            "common": {"C": variable},
            "single_node": {"S": variable},
            "multi_node": {"M": variable},
            "launch_options": [MARK],
            "plugin": {"name": MARK, "install": MARK, "directive": MARK, **source},
            "allreduce": [{"nodes": 1, "gpus": 1, "message_bytes": 1, "bus_gb_s": 1.0, **source}],
            **source,
        },
        "env": {"E": variable},
        "software": {
            "setup": [{"text": "true", "reason": MARK, **source}],
            "python": MARK,
            "easybuild": {
                "modules": [MARK],
                "prefix_variable": MARK,
                "prefix": MARK,
                "toolchains": [MARK],
                **note,
            },
            "eessi": {"modules": [MARK], "versions": [MARK], **note},
            "container": {"runtime": "singularity", **container},
            "other_containers": [{"runtime": "podman-hpc", "annotations": {MARK: MARK}, **container}],
            "lacks": {MARK + "x": {"why": MARK, **source}},
            "fallbacks": {"true": [MARK]},
            "unversioned": {MARK: MARK},
            "prefix": MARK,
            "wrapper": MARK,
            "no_venv": MARK,
            "offers": {MARK: _offer(software, note), "more": {"environment": _IN_CONTAINERS}},
            **note,
        },
        "environment": software,
        "billing": {"unit": MARK, "per_node_hour": 1.0, **note},
        "storage": {
            MARK: {
                "path": MARK,
                "job_folder": MARK,
                "kind": MARK,
                "quota": MARK,
                "purge": MARK,
                "striping": MARK,
                **source,
            }
        },
        "traps": [MARK],
    }
