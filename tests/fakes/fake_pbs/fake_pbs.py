"""A fake PBS: qsub, qstat, qdel, qrerun and pbsnodes of one node, for tests where there is no PBS.

It really runs the scripts, in the background, and answers in the form, words and exit codes recorded from
OpenPBS 23.06 (tests/data/pbs). Settings, from the environment:

FAKE_PBS_HOME      folder for its jobs (required)
FAKE_PBS_JOB_PATH  PATH of the jobs; by default a bare system's: PBS does not hand the submitter's on
FAKE_PBS_HISTORY   0: ended jobs are forgotten at once
FAKE_PBS_GPUS      ngpus of the node; it has none by default
FAKE_PBS_JSON      broken: qstat -F json prints what some versions do, a quote that is not escaped

FAKE_PBS_OPERATOR  1: users are PBS operators, who alone may qrerun
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, NoReturn

sys.path.append(str(Path(__file__).parents[3]))
from tests.fakes.scripts_of_jobs import end, run_later, run_script

SERVER = "fakepbs"
KILL_DELAY_S = 1.0
QUEUES = ("debug", "prod", "preemptable", "debug-scaling", "workq")
QUEUED, RUNNING, DELETED, FINISHED, FAILED = 10, 42, 91, 92, 93
HOME = Path(os.environ["FAKE_PBS_HOME"])
HEAD = {"timestamp": 1795214345, "pbs_version": "23.06.06", "pbs_server": SERVER}
Job = dict[str, Any]


def fail(code: int, text: str) -> NoReturn:
    """Say why on stderr and end."""
    sys.stderr.write(text + "\n")
    sys.exit(code)


def path_of(number: str) -> Path:
    """Return the file that holds a job."""
    return HOME / f"{number}.json"


def load(number: str) -> Job | None:
    """Return a job, None if there is no such."""
    try:
        job: Job = json.loads(path_of(number).read_text())
    except FileNotFoundError:
        return None
    return job


def save(job: Job) -> None:
    """Keep a job, whole."""
    job["mtime"] = time.time()
    new = path_of(job["number"]).with_suffix(f".{os.getpid()}")
    new.write_text(json.dumps(job))
    new.rename(path_of(job["number"]))


def new_number() -> str:
    """Return the next free number, whoever else asks."""
    for number in range(1, 100000):
        try:
            (HOME / f"{number}.taken").touch(exist_ok=False)
        except FileExistsError:
            continue
        return str(number)
    fail(1, "qsub: no number left")


# -- qsub


def directives(script: str) -> list[str]:
    """Return the words of the #PBS lines, which end at the first command."""
    words: list[str] = []
    for line in script.splitlines():
        if line.startswith("#PBS "):
            words += line[5:].split(maxsplit=1)
        elif line.strip() and not line.startswith("#"):
            break
    return words


def qsub(argv: list[str]) -> None:
    """``qsub [options] SCRIPT``: keep a copy, start a background process that runs it, print its id."""
    if (HOME / "down").exists():
        fail(162, f"Connection refused\nqsub: cannot connect to server {SERVER} (errno=15010)")
    if not argv or not Path(argv[-1]).is_file():
        fail(1, "qsub: script file:: No such file or directory")
    script = Path(argv[-1]).read_text()
    words = directives(script) + argv[:-1]
    options: dict[str, str] = {}
    resources: dict[str, str] = {}
    for option, value in zip(words[::2], words[1::2], strict=True):
        if option == "-l":
            resources |= dict(part.partition("=")[::2] for part in split_resources(value))
        elif option in ("-N", "-A", "-q", "-o", "-j", "-k", "-W", "-m", "-r", "-J"):
            options[option] = value.strip()
        else:
            fail(2, f"qsub: invalid option -- '{option.lstrip('-')}'\nusage: qsub [-a date_time] ...")
    check(options, resources)
    number = new_number()
    job: Job = {
        "number": number,
        "script": script,
        "name": options.get("-N", Path(argv[-1]).name),
        "queue": options.get("-q", "debug"),
        "options": options,
        "resources": resources,
        "workdir": os.getcwd(),
        "path": os.environ["PATH"],
        "state": "Q",
        "substate": QUEUED,
        "ctime": time.time(),
        "arguments": " ".join(argv),
    }
    if "-J" in options:
        indices = array_indices(options["-J"])
        number += "[]"
        save(job | {"number": number, "indices": indices})
        jobs = [
            job | {"number": number.replace("[]", f"[{i}]"), "index": i, "array": number} for i in indices
        ]
    else:
        jobs = [job]
    for one in jobs:
        save(one)
        run_later(__file__, "run", one["number"], HOME / "runner.log")
    print(f"{number}.{SERVER}", flush=True)
    if options.get("-W") == "block=true":
        while (ended := load(number)) and ended["state"] != "F":
            time.sleep(0.05)
        sys.exit((ended or {}).get("status", 1))


def array_indices(text: str) -> list[int]:
    """Read ``X-Y[:Z][%MAX]``; how many run at once is not limited here."""
    match = re.fullmatch(r"(\d+)-(\d+)(?::(\d+))?(?:%\d+)?", text)
    if not match or int(match[1]) >= int(match[2]):
        fail(2, "qsub: illegal -J value\nusage: qsub [-a date_time] ...")
    return list(range(int(match[1]), int(match[2]) + 1, int(match[3] or 1)))


def split_resources(value: str) -> list[str]:
    """Split ``select=2:ncpus=4,walltime=1:00:00``."""
    return [part for part in value.split(",") if part]


def check(options: dict[str, str], resources: dict[str, str]) -> None:
    """Refuse what the real qsub refuses, in its words."""
    if options.get("-q", "debug") not in QUEUES:
        fail(170, "qsub: Unknown queue")
    if not re.fullmatch(r"[\w.+-]{1,230}", options.get("-N", "x"), re.ASCII):
        fail(2, "qsub: invalid -N value\nusage: qsub [-a date_time] ...")
    if not re.fullmatch(r"(\d+:)?(\d+:)?\d+", resources.get("walltime", "1")):
        fail(166, "qsub: Illegal attribute or resource value Resource_List.walltime")


# -- the background process of one job


def seconds(walltime: str) -> int:
    """Return ``HH:MM:SS`` in seconds."""
    total = 0
    for part in walltime.split(":"):
        total = total * 60 + int(part)
    return total


def run(argv: list[str]) -> None:
    """Wait until the job may start, run it in the environment PBS gives, and keep how it ended."""
    (number,) = argv
    while (HOME / "stopped").exists():
        if (load(number) or {"state": "F"})["state"] != "Q":
            return
        time.sleep(0.05)
    while (word := dependency(load(number) or {})) == "wait":
        time.sleep(0.05)
    job = load(number)
    if job is None or job["state"] != "Q":
        return
    if word == "never":
        save(job | {"state": "F", "substate": FINISHED, "obittime": time.time()})
        return
    spool, direct = HOME / f"{number}.OU", "d" in job["options"].get("-k", "")
    target = Path(job["options"].get("-o", f"{job['workdir']}/{job['name']}.o{number}"))
    out = target if direct else spool
    save(job | {"state": "R", "substate": RUNNING, "stime": time.time()})
    with out.open("wb") as file:
        child = run_script(script_copy(job), file, os.environ["HOME"], job_environment(job))
        save((load(number) or job) | {"pid": child.pid})
        status, substate = watch(job, child, file)
    if substate == QUEUED:
        count = (load(number) or job).get("run_count", 1) + 1
        save((load(number) or job) | {"state": "Q", "substate": QUEUED, "run_count": count})
        run(argv)
        return
    if not direct and target.parent.is_dir():
        target.write_bytes(spool.read_bytes())
    save(
        (load(number) or job)
        | {"state": "F", "substate": substate, "status": status, "obittime": time.time()}
    )


def dependency(job: Job) -> str:
    """Say whether the jobs that this one waits for let it go: go, wait or never."""
    match = re.match(r"depend=(\w+):(.+)", job["options"].get("-W", "")) if job.get("state") == "Q" else None
    for job_id in match[2].split(":") if match else ():
        other = load(job_id.partition(".")[0])
        if other is None:
            return "never"
        other = summed_up(other)
        if other["state"] != "F":
            return "wait"
        if match and match[1] == "afterok" and other.get("status") != 0:
            return "never"
    return "go"


def summed_up(job: Job) -> Job:
    """Return a job, of an array with the state that its subjobs make."""
    if "indices" not in job:
        return job
    subjobs = [load(job["number"].replace("[]", f"[{i}]")) or job for i in job["indices"]]
    states = {subjob["state"] for subjob in subjobs}
    if states == {"F"}:
        bad = any(subjob.get("status") != 0 for subjob in subjobs)
        return job | {"state": "F", "substate": FINISHED, "status": int(bad)}
    return job | {"state": "Q" if states == {"Q"} else "B"}


def script_copy(job: Job) -> str:
    """Return the path of the script as it was at submission."""
    path = HOME / f"{job['number']}.SC"
    path.write_text(job["script"])
    return str(path)


def job_environment(job: Job) -> dict[str, str]:
    """Return what a job sees: next to nothing of the submitter's."""
    number, nodes = job["number"], HOME / f"{job['number']}.nodes"
    chunk = dict(p.partition("=")[::2] for p in job["resources"].get("select", "1").split(":")[1:])
    count = int(job["resources"].get("select", "1").split(":")[0])
    nodes.write_text(f"{os.uname().nodename}\n" * count * int(chunk.get("mpiprocs", 1)))
    return {
        "HOME": os.environ["HOME"],
        "PATH": os.environ.get("FAKE_PBS_JOB_PATH", "/usr/local/bin:/usr/bin:/bin"),
        "LOGNAME": os.environ.get("LOGNAME", "user"),
        "ENVIRONMENT": "BATCH",
        "PBS_ENVIRONMENT": "PBS_BATCH",
        "PBS_JOBID": f"{number}.{SERVER}",
        **({"PBS_ARRAY_INDEX": str(job["index"]), "PBS_ARRAY_ID": job["array"]} if "index" in job else {}),
        "PBS_JOBNAME": job["name"],
        "PBS_NODEFILE": str(nodes),
        "PBS_O_WORKDIR": job["workdir"],
        "PBS_O_PATH": job["path"],
        "PBS_QUEUE": job["queue"],
        # What a site would set for everybody: its module command, and MPI for root, who may run the tests.
        **{n: v for n, v in os.environ.items() if n.startswith(_SITE_WIDE)},
    }


_SITE_WIDE = ("FAKE_PALS_", "FAKE_PBS_", "OMPI_ALLOW_", "BASH_FUNC_")


def watch(job: Job, child: subprocess.Popen[bytes], file: Any) -> tuple[int, int]:
    """Wait for the script; end it at its walltime or when deleted. Return Exit_status and substate."""
    limit_s = seconds(job["resources"].get("walltime", "01:00:00"))
    start = time.monotonic()
    deleted = exceeded = 0.0
    rerun = HOME / f"{job['number']}.rerun"
    while child.poll() is None:
        time.sleep(0.02)
        now = time.monotonic()
        if rerun.exists():
            end(child.pid, signal.SIGKILL)
        if not deleted and (HOME / f"{job['number']}.delete").exists():
            deleted = now
            end(child.pid, signal.SIGTERM)
        if not exceeded and not deleted and now - start > limit_s:
            exceeded = now
            text = f"=>> PBS: job killed: walltime {int(now - start)} exceeded limit {limit_s}\n"
            file.write(text.encode())
            file.flush()
            end(child.pid, signal.SIGTERM)
        if max(deleted, exceeded) and now - max(deleted, exceeded) > KILL_DELAY_S:
            end(child.pid, signal.SIGKILL)
    end(child.pid, signal.SIGKILL)
    if rerun.exists():
        rerun.unlink()
        return 0, QUEUED
    if deleted:
        return 256 + signal.SIGTERM, DELETED
    if exceeded:
        return -29, FAILED
    code = child.returncode
    return (code if code >= 0 else 256 - code), FINISHED


# -- qstat


def qstat(argv: list[str]) -> None:
    """``qstat [-x] -f [-F json] [ID...]``; without ids all jobs that have not ended; -Q and -B: no jobs."""
    if "-Q" in argv or "-B" in argv:
        about_server("Queue" if "-Q" in argv else "Server")
    as_json, ids = "json" in argv, [word for word in argv if word[0].isdigit()]
    everything = (path.stem for path in HOME.glob("*.json"))
    ids = ids or [i for i in everything if "-x" in argv or (load(i) or {})["state"] != "F"]
    if "-t" in argv:
        arrays = {word: load(word.partition(".")[0]) for word in ids if "[]" in word}
        ids += [word.replace("[]", f"[{i}]") for word, job in arrays.items() if job for i in job["indices"]]
    down = (HOME / "down").exists()
    jobs: dict[str, Job] = {}
    code, unknown = 0, False  # the real one leaves out what comes after an id that it does not know
    for word in [] if down else ids:
        number = word.partition(".")[0]
        job = load(number)
        job = summed_up(job) if job else None
        forgotten = os.environ.get("FAKE_PBS_HISTORY") == "0" and job is not None and job["state"] == "F"
        if job is None or forgotten:
            code, unknown = 153, True
            sys.stderr.write(f"qstat: Unknown Job Id {number}.{SERVER}\n")
        elif job["state"] == "F" and "-x" not in argv:
            code = 35
            sys.stderr.write(
                f"qstat: {number}.{SERVER} Job has finished, "
                "use -x or -H to obtain historical job information\n"
            )
        elif not unknown:
            jobs[f"{number}.{SERVER}"] = attributes(job)
    print(json_text(jobs) if as_json else plain_text(jobs), end="")
    if down:
        fail(255, f"Connection refused\nqstat: cannot connect to server {SERVER} (errno=15010)")
    sys.exit(code)


def about_server(kind: str) -> NoReturn:
    """Print the queues or the server as ``-f -F json`` does; with the server down, neither of them."""
    flags = {"enabled": "True", "started": "True"}
    queues = {name: {"queue_type": "Execution", **flags} for name in QUEUES}
    limits = {"resources_max": {"nodect": 2, "walltime": "01:00:00"}}
    server = {SERVER: {"server_state": "Active", "default_queue": QUEUES[0]}}
    found = {"Queue": {**queues, QUEUES[0]: {**queues[QUEUES[0]], **limits}}, "Server": server}
    down = (HOME / "down").exists()
    print(json.dumps({**HEAD, **({} if down else {kind: found[kind]})}, indent="\t"))
    if down:
        fail(255, f"Connection refused\nqstat: cannot connect to server {SERVER} (errno=15010)")
    sys.exit(0)


def pbsnodes(argv: list[str]) -> None:
    """``pbsnodes -a -F json``: one node, which is this machine; with the server down it prints nothing."""
    if (HOME / "down").exists():
        fail(1, f"Connection refused\npbsnodes: cannot connect to server {SERVER}, error=15010")
    name, cpus, gpus = os.uname().nodename, len(os.sched_getaffinity(0)), os.environ.get("FAKE_PBS_GPUS")
    has = {"arch": "linux", "host": name, "mem": "8388608kb", "ncpus": cpus}
    node = {
        "Mom": name,
        "ntype": "PBS",
        "state": "free",
        "pcpus": cpus,
        "resources_available": {**has, **({"ngpus": int(gpus)} if gpus else {}), "vnode": name},
        "resources_assigned": {},
        "resv_enable": "True",
        "sharing": "default_shared",
    }
    print(json.dumps({**HEAD, "nodes": {name: node}}, indent="\t"))


def attributes(job: Job) -> Job:
    """Return a job as qstat -f shows it, in its order."""
    held = job["state"] == "Q" and dependency(job) == "wait"
    shown: Job = {
        "Job_Name": job["name"],
        "Job_Owner": f"user@{SERVER}",
        "job_state": "H" if held else job["state"],
        "queue": job["queue"],
        "server": SERVER,
        "ctime": time.ctime(job["ctime"]),
        "exec_host": f"{os.uname().nodename}/0*1" if job["state"] in "RF" else None,
        "Hold_Types": "s" if held else "n",
        "depend": job["options"]["-W"].partition("=")[2] if held else None,
        "Join_Path": job["options"].get("-j", "n"),
        "Keep_Files": job["options"].get("-k", "n"),
        "mtime": time.ctime(job["mtime"]),
        "Resource_List": dict(job["resources"]),
        "stime": time.ctime(job["stime"]) if "stime" in job else None,
        "obittime": time.ctime(job["obittime"]) if "obittime" in job else None,
        "substate": job["substate"],
        "Variable_List": {"PBS_O_HOME": os.environ["HOME"], "PBS_O_WORKDIR": job["workdir"]},
        "comment": comment(job),
        "Exit_status": job.get("status"),
        "Submit_arguments": job["arguments"],
        "Submit_Host": SERVER,
    }
    return {name: value for name, value in shown.items() if value is not None}


def comment(job: Job) -> str | None:
    """Return PBS' word on a job."""
    if job["state"] == "Q":
        return "Not Running: Queue not started." if (HOME / "stopped").exists() else None
    word = {
        DELETED: " and terminated by user",
        FAILED: " and exceeded resource walltime",
        FINISHED: " and finished",
    }
    when = time.strftime("%a %b %d at %H:%M", time.localtime(job.get("stime", 0)))
    return f"Job run at {when} on ({SERVER}:ncpus=1)" + word.get(job["substate"], "")


def json_text(jobs: dict[str, Job]) -> str:
    """Print as PBS does, with tabs; without ``Jobs`` where there are none."""
    document: Job = {"timestamp": int(time.time()), "pbs_version": "23.06.06", "pbs_server": SERVER}
    if jobs:
        document["Jobs"] = jobs
    text = json.dumps(document, indent="\t").replace('": ', '":\t') + "\n"
    return text.replace('"Submit_Host":', '"X":\t"a"b",\n"Submit_Host":') if broken() else text


def broken() -> bool:
    """Return whether JSON is to be broken."""
    return os.environ.get("FAKE_PBS_JSON") == "broken"


def plain_text(jobs: dict[str, Job]) -> str:
    """Print ``name = value`` lines, folded before column 80 with newline and tab."""
    lines = []
    for job_id, values in jobs.items():
        lines.append(f"Job Id: {job_id}")
        for name, value in values.items():
            if name == "Variable_List":
                lines.append(fold("    Variable_List = " + ",".join(f"{k}={v}" for k, v in value.items())))
            elif isinstance(value, dict):
                lines += [fold(f"    {name}.{key} = {part}") for key, part in value.items()]
            else:
                lines.append(fold(f"    {name} = {value}"))
        lines.append("")
    return "\n".join(lines) + "\n" if lines else ""


def fold(line: str) -> str:
    """Break a long line as qstat does."""
    pieces = [line[:79]]
    rest = line[79:]
    while rest:
        pieces.append(rest[:71])
        rest = rest[71:]
    return "\n\t".join(pieces)


# -- qdel


def qdel(argv: list[str]) -> None:
    """``qdel ID...``."""
    if (HOME / "down").exists():
        fail(162, f"Connection refused\nCouldn't connect to cluster: {SERVER}")
    for word in argv:
        number = word.partition(".")[0]
        job = load(number)
        if job is None:
            fail(153, f"qdel: Unknown Job Id {number}.{SERVER}")
        if job["state"] == "F":
            fail(35, f"qdel: Job has finished {number}.{SERVER}")
        for i in job.get("indices", ()):
            subjob = number.replace("[]", f"[{i}]")
            if (load(subjob) or job)["state"] != "F":
                qdel([subjob])
        if "indices" in job:
            continue
        if job["state"] == "Q":
            save(job | {"state": "F", "substate": DELETED})
        (HOME / f"{number}.delete").touch()


# -- qrerun


def qrerun(argv: list[str]) -> None:
    """``qrerun ID...``: end a running job and queue it again; as recorded, not for ordinary users."""
    if (HOME / "down").exists():
        fail(162, f"Connection refused\nqrerun: cannot connect to server {SERVER} (errno=15010)")
    for word in argv:
        number = word.partition(".")[0]
        job = load(number)
        if job is None:
            fail(153, f"qrerun: Unknown Job Id {number}.{SERVER}")
        if job["state"] == "F":
            fail(35, "qrerun: Job has finished")
        if os.environ.get("FAKE_PBS_OPERATOR") != "1":
            fail(159, f"qrerun: Unauthorized Request  {number}.{SERVER}")
        if job["options"].get("-r") == "n":
            fail(190, f"qrerun: job is not rerunnable {number}.{SERVER}")
        (HOME / f"{number}.rerun").touch()


if __name__ == "__main__":
    HOME.mkdir(parents=True, exist_ok=True)
    {"qsub": qsub, "qstat": qstat, "qdel": qdel, "qrerun": qrerun, "pbsnodes": pbsnodes, "run": run}[
        sys.argv[1]
    ](sys.argv[2:])
