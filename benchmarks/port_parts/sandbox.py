"""Run a batch script where nothing but stubs is: the part that ``unshare`` starts, with Python alone.

    unshare --mount --net --pid --ipc --uts --fork --kill-child python sandbox.py SPEC

SPEC is a JSON file with the script, its variables, its folder, and the files that it finds. The root folder
is a fresh tmpfs; of the machine only libraries and Python's own folder are there, read-only. There is no
network. The result is a JSON document on stdout: the commands that were called, the files that hold the
output of programs, and what the shell said.
"""

import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path

LIMIT = 16 * 1024 * 1024
HOOK = r"""
command_not_found_handle() { /sbx/stub --sbx "$@"; }
export -f command_not_found_handle
hook_line() { export SBX_LINE=$1; builtin printf "%s\t%s\n" "$1" "$PWD" >>/sbx/out/trace; }
shopt -s expand_aliases
if [ -z "${SBX_MAIN:-}" ]; then
  export SBX_MAIN=$$ SBX_LINE=0
  RANDOM=42
  set -T
  # One line, since each more of the trap is counted in LINENO.
  trap '[[ ${FUNCNAME-} =~ ^(command_not_found_handle|hook_line)$ ]] || hook_line "$LINENO"' DEBUG
fi
"""
SHELL = r"""#!/sbx/tools/bash -p
for word in "$@"; do
  case $word in
    -*c*|-*s*|-|--) break ;;
    -o|+o|-O) break ;;
    -*) ;;
    *) if [ ! -f "$word" ] || [ "$word" -ef /sbx/stub ]; then exec /sbx/stub --sbx bash "$@"; fi; break ;;
  esac
done
exec /sbx/tools/bash "$@"
"""
DATE = r"""#!/sbx/tools/bash -p
case "$*" in *-d*|*--date*|*-s*|*-r*) exec /sbx/tools/date "$@" ;; esac
exec /sbx/tools/date -u -d '2026-01-02 03:04:05' "$@"
"""


def mount(*words: str) -> None:
    """Mount something."""
    subprocess.run(["mount", *words], check=True, capture_output=True)


def build_root(root: Path, given: dict[str, object]) -> None:
    """Make the folders of the sandbox."""
    mount("-t", "tmpfs", "-o", "size=64m,mode=1777", "tmpfs", str(root))
    for name in (
        "usr/bin",
        "usr/local/bin",
        "sbx/tools",
        "sbx/out",
        "dev",
        "proc",
        "tmp",
        "etc",
        "home/user",
        "var/tmp",
        "opt",
    ):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name in (
        "bin",
        "sbin",
        "lib",
        "lib32",
        "lib64",
        "libx32",
        "usr/lib",
        "usr/lib32",
        "usr/lib64",
        "usr/libexec",
    ):
        there, here = Path("/") / name, root / name
        if there.is_symlink():
            here.symlink_to(os.readlink(there))
        elif there.is_dir() and name not in ("bin", "sbin"):
            here.mkdir(parents=True, exist_ok=True)
            mount("-o", "bind,ro", str(there), str(here))
    if not (root / "bin").is_symlink():
        (root / "bin").symlink_to("usr/bin")
    base = Path(str(given["python prefix"]))
    if base != Path("/usr"):
        (root / base.relative_to("/")).mkdir(parents=True, exist_ok=True)
        mount("-o", "bind,ro", str(base), str(root / base.relative_to("/")))
    mount("-t", "proc", "-o", "ro", "proc", str(root / "proc"))
    for name in ("null", "zero", "random", "urandom", "full"):
        (root / "dev" / name).touch()
        mount("-o", "bind", f"/dev/{name}", str(root / "dev" / name))
    for name, target in {"fd": "/proc/self/fd", "stdin": "fd/0", "stdout": "fd/1", "stderr": "fd/2"}.items():
        (root / "dev" / name).symlink_to(target)
    (root / "dev/shm").mkdir(mode=0o1777)
    (root / "etc/passwd").write_text(
        "root:x:0:0::/root:/bin/bash\nuser:x:65534:65534::/home/user:/bin/bash\n"
    )
    if Path("/etc/ld.so.cache").exists():
        shutil.copy("/etc/ld.so.cache", root / "etc")


def executable(path: Path, text: str) -> None:
    """Write a file that can be run."""
    path.write_text(text)
    path.chmod(0o755)


def install(root: Path, given: dict[str, object]) -> None:
    """Put tools and stubs there."""
    tools, programs = root / "sbx/tools", root / "usr/bin"
    known = json.loads(Path(__file__).with_name("commands.json").read_text())
    shutil.copy(Path(__file__).with_name("commands.json"), root / "sbx")
    for name in known["tools"]:
        if found := shutil.which(name):
            shutil.copy(os.path.realpath(found), tools / name)
            (programs / name).symlink_to(f"/sbx/tools/{name}")
    shutil.copy(os.path.realpath(str(given["python"])), root / "sbx/python")
    stub = Path(__file__).with_name("stub.py").read_text()
    # The second line returns from it where a shell reads it.
    executable(root / "sbx/stub", f"#!/sbx/python -IS\n''':'; return 0 2>/dev/null; exit 0 #'''\n{stub}")
    (root / "sbx/hook").write_text(HOOK)
    for name in ("cp", "mv", "ln", "rm", "chmod", "mkdir", "rmdir"):  # the other machine has the files
        (programs / name).unlink()
        executable(programs / name, f'#!/sbx/tools/bash -p\n/sbx/tools/{name} "$@"\nexit 0\n')
    for name in ("bash", "sh", "date"):
        (programs / name).unlink(missing_ok=True)
        executable(programs / name, DATE if name == "date" else SHELL)
    for name in known["stubs"]:
        (programs / name).symlink_to("/sbx/stub")
    # What a script of another shell begins with.
    for name in ("ksh", "zsh", "dash", "ash"):
        (programs / name).symlink_to("/usr/bin/bash")


def place(root: Path, given: dict[str, object]) -> None:
    """Put the files there that the script finds."""
    for name in given["folders"]:  # type: ignore[attr-defined]
        (root / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name, text in given["files"].items():  # type: ignore[attr-defined]
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    for name in given["missing"]:  # type: ignore[attr-defined]
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            path.symlink_to("/sbx/stub")
    for name in given["sourced"]:  # type: ignore[attr-defined]
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        path.write_text("")
    for folder, folders, _ in os.walk(root):
        inside = [name for name in folders if not os.path.ismount(os.path.join(folder, name))]
        folders[:] = [name for name in inside if not os.path.islink(os.path.join(folder, name))]
        Path(folder).chmod(0o1777)


def enter(root: Path, folder: str, drop: bool) -> None:
    """Go into the sandbox for good, as nobody."""
    os.chroot(root)
    os.chdir(folder)
    for limit, value in {
        resource.RLIMIT_FSIZE: LIMIT,
        resource.RLIMIT_CPU: 20,
        resource.RLIMIT_CORE: 0,
    }.items():
        resource.setrlimit(limit, (value, value))
    if drop:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)


def outputs(root: Path, count: int) -> dict[str, list[int]]:
    """Return file -> the numbers of the programs whose output is in it."""
    found: dict[str, list[int]] = {}
    for folder, folders, files in os.walk(root):
        short = "/" + os.path.relpath(folder, root).replace(".", "", 1).lstrip("/")
        folders[:] = [name for name in folders if not os.path.ismount(os.path.join(folder, name))]
        if short in ("/sbx", "/proc", "/dev", "/usr", "/etc"):
            folders[:] = []
            continue
        for name in files:
            path = Path(folder, name)
            if path.is_symlink() or not path.is_file() or path.stat().st_size > 1_000_000:
                continue
            held = {int(one) - 77_000_000 for one in re.findall(rb"(?m)\b77\d{6}\b", path.read_bytes())}
            if held := {one for one in held if one < count}:
                found[os.path.join("/" if short == "/" else short, name)] = sorted(held)
    return found


def reap(processes: Path) -> None:
    """Wait a second for what the script left in the background; the end of this process ends it."""
    for _ in range(20):
        if not any(name.isdigit() and name != "1" for name in os.listdir(processes)):
            return
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.05)


def main() -> None:
    """Run the script of a spec and print the result."""
    given = json.loads(Path(sys.argv[1]).read_text())
    root = Path(given["root"])
    build_root(root, given)
    install(root, given)
    place(root, given)
    home = {
        "HOME": "/home/user",
        "USER": "user",
        "LOGNAME": "user",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
    fixed = {"PATH": "/usr/local/bin:/usr/bin:/bin", "BASH_ENV": "/sbx/hook", "TMPDIR": "/tmp"}
    command = ["/sbx/tools/bash", *given["flags"], given["script"]]
    with open(root / "sbx/out/stdout", "wb") as out, open(root / "sbx/out/stderr", "wb") as err:
        started = subprocess.Popen(
            command,
            env={**home, **fixed, **given["env"]},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            preexec_fn=lambda: enter(root, given["cwd"], given["drop"]),
            start_new_session=True,
        )
        try:
            code: int | str = started.wait(given["limit"])
        except subprocess.TimeoutExpired:
            code = "time"
        reap(root / "proc")
    records = root / "sbx/out/records"
    lines = records.read_text(errors="replace").splitlines() if records.exists() else []
    trace = root / "sbx/out/trace"
    result = {
        "code": code,
        "records": [json.loads(line) for line in lines],
        "stderr": (root / "sbx/out/stderr").read_text(errors="replace")[-40_000:],
        "trace": trace.read_text(errors="replace")[-400_000:] if trace.exists() else "",
        "files": outputs(root, len(lines)),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
