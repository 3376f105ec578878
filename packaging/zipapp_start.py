"""Puts a check of Python's version before all else that a file of zipapp.sh runs: ``zipapp_start.py FILE``.

What such a file unpacks is compiled for one minor version; the Python of a login node may be another. The
check names the module with a Python that the profile of this site loads, by packaging/python_modules.tsv.
"""

import os
import sys
import zipfile

# Also for the Pythons that it refuses: no newer syntax than theirs. Nothing else is imported before it.
CHECK = r"""import sys
if sys.version_info[:2] != {made_with}:
    def module():
        import os, re, subprocess
        cluster = os.environ.get("SLURM_CLUSTER_NAME", "")
        try:
            words = ["scontrol", "show", "config"]
            said = "" if cluster else subprocess.check_output(words, stderr=subprocess.STDOUT).decode()
            cluster = cluster or re.search(r"(?m)^ClusterName *= *(\S+)", said + "\nClusterName = -").group(1)
        except (OSError, subprocess.CalledProcessError):
            pass
        for sign, pattern, commands in {table}:
            if re.match("(?i)(" + pattern + r")\Z", cluster if sign == "cluster" else os.uname()[1]):
                return "the profile of this site loads one: " + commands
        return "on a cluster a module may have it (module avail python, module load NAME)"
    sys.exit(
        "hpclaunch: %s is made for Python {text}, and this is Python %d.%d (%s); "
        "start it with the right one: python{text} %s\n  where there is none: %s; or uv python install {text}"
        % (sys.argv[0], sys.version_info[0], sys.version_info[1], sys.executable, sys.argv[0], module())
    )
"""
TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "python_modules.tsv")


def main(path: str) -> None:
    """Replace the file by one with the check, which appears whole or not at all."""
    made_with = sys.version_info[:2]
    with open(TABLE, encoding="utf-8") as file:
        table = [tuple(line.rstrip("\n").split("\t")) for line in file]
    words = {
        "{made_with}": str(tuple(made_with)),
        "{text}": ".".join(map(str, made_with)),
        "{table}": repr(table),
    }
    check = CHECK
    for name, value in words.items():
        check = check.replace(name, value)
    with open(path, "rb") as file:
        first = file.readline()
    new = f"{path}.new"
    with open(new, "xb") as file:
        file.write(first)
        with zipfile.ZipFile(path) as old, zipfile.ZipFile(file, "w") as archive:
            for member in old.infolist():
                data = old.read(member)
                archive.writestr(member, check.encode() + data if member.filename == "__main__.py" else data)
    os.chmod(new, os.stat(path).st_mode)
    os.replace(new, path)


if __name__ == "__main__":
    main(sys.argv[1])
