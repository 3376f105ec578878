"""A private Slurm cluster on this machine, and a private sshd: what the tests drive them with."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import psutil

HERE = Path(__file__).parent
AT_HOME = HERE / "at-home.sh"
_FILES = ("/usr/lib/x86_64-linux-gnu/pmix2/lib/libpmix.so", "/usr/share/modules/init/bash")
_PROGRAMS = (
    *("slurmctld", "slurmd", "sbatch", "srun", "munged", "unshare", "setsid", "gcc", "sshd", "ssh"),
    *("slurmdbd", "mariadbd", "mariadb-install-db"),
)


def missing_parts() -> list[str]:
    """Return what this machine lacks for the tests with Slurm, each in a few words.

    HPCLAUNCH_TEST_PROGRAMS: where to look for the programs instead of PATH.
    """
    path = os.environ.get("HPCLAUNCH_TEST_PROGRAMS") or _path()
    missing = [program for program in _PROGRAMS if not shutil.which(program, path=path)]
    missing += [file for file in _FILES if not Path(file).exists()]
    if os.geteuid() != 0 and not missing and not _may_unshare():
        missing.append("root, or the right to make user namespaces")
    return missing


def _path() -> str:
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def _environment() -> dict[str, str]:
    """Return the environment of servers, which outlive a test: none of its folders."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("XDG_")}
    return {**kept, "PATH": _path()}


def missing_for_simgrid() -> list[str]:
    """Return what this machine lacks for the simulation of networks."""
    missing = [] if shutil.which("g++") else ["g++"]
    return missing + ([] if Path("/usr/include/simgrid/s4u.hpp").exists() else ["libsimgrid-dev"])


def missing_for_ssh() -> list[str]:
    """Return what this machine lacks for the tests with sshd."""
    return [name for name in ("/usr/sbin/sshd", "ssh-keygen", "ssh") if not shutil.which(name, path=_path())]


def _may_unshare() -> bool:
    words = ("unshare", "--map-current-user", "--keep-caps", "--uts", "--mount", "true")
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def apt_line() -> str:
    """Return the command that installs what is needed on Debian 12."""
    names = (HERE / "debian-packages.txt").read_text().split()
    return "apt-get install -y --no-install-recommends " + " ".join(names)


def lumig_settings() -> dict[str, str]:
    """Return the settings of slurm-cluster.sh that make its nodes LUMI-G nodes."""
    script = f"set -a; . {HERE}/lumig.env; env -0"
    done = subprocess.run(["bash", "-c", script], env={}, capture_output=True, text=True, check=True)
    pairs = (entry.partition("=") for entry in done.stdout.split("\0") if entry)
    return {name: value for name, _, value in pairs if name.isupper() and name not in ("PWD", "SHLVL")}


def free_ports(count: int) -> int:
    """Return the first of ``count`` neighbouring TCP ports that are free, below the ephemeral ones."""
    for base in range(12000 + os.getpid() % 97 * 160, 30000, count):
        if all(_is_free(base + i) for i in range(count)):
            return base
    raise RuntimeError(f"no {count} free neighbouring ports on this machine")


def _is_free(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


class Slurm:
    """One cluster in a folder of its own; ``settings`` are the variables of slurm-cluster.sh."""

    def __init__(self, **settings: str) -> None:
        """Choose the folder (short, for the path of munge's socket) and the ports; start nothing."""
        self.lab = Path(tempfile.mkdtemp(prefix="slurm-"))
        self._settings = {"NODES": "4", "LAB": str(self.lab), "OWNER": str(os.getpid()), **settings}
        self._settings["PORT"] = str(free_ports(128))
        self.conf = self.lab / "slurm.conf"

    def start(self) -> Slurm:
        """Start what does not run yet and wait until the nodes are idle."""
        self._script("start", check=True)
        return self

    def stop(self) -> None:
        """End everything and remove the folder."""
        self._script("stop", check=False)
        shutil.rmtree(self.lab, ignore_errors=True)

    def forget_jobs(self) -> None:
        """Start the controller anew without its memory, as after a purge of old jobs."""
        self.end_controller()
        subprocess.run(["slurmctld", "-c", "-i", "-f", str(self.conf)], env=self.environment(), check=True)
        self.start()

    def save_jobs(self, job: str) -> None:
        """Make the controller write its memory of the jobs, which it does some seconds after a change."""
        state = self.lab / "state" / "job_state"
        before = state.stat().st_mtime_ns if state.exists() else 0
        self.run("scontrol", "update", f"jobid={job}", "comment=saved")
        while not state.exists() or state.stat().st_mtime_ns == before:
            time.sleep(0.05)

    def lose_state(self) -> None:
        """Start the controller without the files of its state: numbers of jobs begin anew."""
        self.end_controller("KILL")
        shutil.rmtree(self.lab / "state")
        (self.lab / "state").mkdir()
        self.start()

    def end_controller(self, signal: str = "TERM") -> None:
        """End slurmctld by a signal and wait until it is gone; by KILL it saves nothing before."""
        pid = (self.lab / "pid" / "slurmctld.pid").read_text().strip()
        subprocess.run(["kill", f"-{signal}", pid], check=True)
        while _runs(pid):
            pass

    def environment(self) -> dict[str, str]:
        """Return the environment of a client of this cluster."""
        return {**_environment(), "SLURM_CONF": str(self.conf)}

    def run(self, *argv: str) -> subprocess.CompletedProcess[str]:
        """Run a client."""
        return subprocess.run(argv, env=self.environment(), text=True, capture_output=True, check=False)

    def _script(self, action: str, check: bool) -> None:
        environment = {**self.environment(), **self._settings}
        words = [str(HERE / "slurm-cluster.sh"), action]
        done = subprocess.run(words, env=environment, text=True, capture_output=True, check=False)
        if check and done.returncode != 0:
            raise RuntimeError(f"slurm-cluster.sh {action}: {done.stdout}{done.stderr}")


class Sshd:
    """One OpenSSH server on loopback with keys of its own; its users are on a client of the cluster, if any.

    ``config``: lines that go before the server's own settings; ``variables``: of its users' environment;
    ``pam``: the text of its PAM service.
    """

    def __init__(
        self,
        cluster: Slurm | None = None,
        config: str = "",
        variables: Mapping[str, str] | None = None,
        pam: str = "",
    ) -> None:
        """Choose the folder and the port; start nothing."""
        self.folder = Path(tempfile.mkdtemp(prefix="sshd-"))
        self.port = free_ports(1)
        self.key, self.known_hosts = self.folder / "id_ed25519", self.folder / "known_hosts"
        self._settings = {"SSHLAB": str(self.folder), "SSHPORT": str(self.port), "SSHEXTRA": config}
        self._settings |= {"SSHPAM": pam, "OWNER": str(os.getpid())}
        self._settings["SSHENV"] = " ".join(f'"{name}={value}"' for name, value in (variables or {}).items())
        self._environment = cluster.environment() if cluster else _environment()

    def start(self) -> Sshd:
        """Start the server and wait until it listens."""
        self._script("start")
        return self

    def host_block(self, alias: str, *settings: str) -> str:
        """Return the block of an ssh configuration that leads here, with this server's keys only."""
        lines = [f"HostName 127.0.0.1\nPort {self.port}", f"IdentityFile {self.key}", "IdentitiesOnly yes"]
        lines += [f"UserKnownHostsFile {self.known_hosts}", "GlobalKnownHostsFile none"]
        return "\n  ".join([f"Host {alias}", *settings, *lines]) + "\n"

    def break_connections(self, and_stop: bool = False) -> None:
        """Kill the server's side of every connection; what users have started goes on."""
        server = psutil.Process(int((self.folder / "sshd.pid").read_text()))
        children = []
        for process in server.children(recursive=True):
            with suppress(psutil.NoSuchProcess):  # a command there, such as touch, ended since it was listed
                if process.name() == "sshd":
                    children.append(process)
        for process in (server, *children) if and_stop else children:
            with suppress(psutil.NoSuchProcess):  # an sshd ends with the one that was killed before it
                process.kill()
        psutil.wait_procs(children)

    def stop(self) -> None:
        """End the server and remove the folder."""
        self._script("stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, command: str, known_hosts: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command there with OpenSSH's client and this server's keys only."""
        options = {
            "StrictHostKeyChecking": "yes",
            "UserKnownHostsFile": str(known_hosts or self.folder / "known_hosts"),
            "GlobalKnownHostsFile": "/dev/null",
            "BatchMode": "yes",
            "IdentitiesOnly": "yes",
        }
        words = ["ssh", "-F", "/dev/null", "-p", str(self.port), "-i", str(self.folder / "id_ed25519")]
        words += [f"-o{name}={value}" for name, value in options.items()]
        return subprocess.run([*words, "127.0.0.1", command], capture_output=True, text=True, check=False)

    def _script(self, action: str) -> None:
        environment = {**self._environment, **self._settings}
        subprocess.run([str(HERE / "sshd.sh"), action], env=environment, check=True)


def write_ssh(programs: Path) -> None:
    """Write a program ssh for which HOME is the user's home folder: the real one asks the password file."""
    (programs / "ssh").write_text(f'#!/bin/sh\nexec {AT_HOME} {shutil.which("ssh")} "$@"\n')
    (programs / "ssh").chmod(0o755)


def _runs(pid: str) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
