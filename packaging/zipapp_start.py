"""Puts a check of Python's version before all else that a file of zipapp.sh runs: ``zipapp_start.py FILE``.

What such a file unpacks is compiled for one minor version; the Python of a login node may be another.
"""

import os
import sys
import zipfile

# Also for the Pythons that it refuses: no newer syntax than theirs.
CHECK = """import sys
if sys.version_info[:2] != {made_with}:
    sys.exit(
        "hpclaunch: %s is made for Python {text}, and this is Python %d.%d (%s); "
        "start it with the right one: python{text} %s"
        % (sys.argv[0], sys.version_info[0], sys.version_info[1], sys.executable, sys.argv[0])
    )
"""


def main(path: str) -> None:
    """Replace the file by one with the check, which appears whole or not at all."""
    made_with = sys.version_info[:2]
    check = CHECK.format(made_with=tuple(made_with), text=".".join(map(str, made_with)))
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
