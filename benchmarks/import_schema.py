"""Start-up cost of the profile schema: msgspec, as shipped, beside the same classes in pydantic.

Whole processes, one kind after the other in turn, medians. The pydantic twin is the schema's own source with
the base class and the constraints renamed. Needs pydantic beside hpclaunch: pip install pydantic

    python benchmarks/import_schema.py [RUNS]
"""

from __future__ import annotations

import inspect
import re
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from hpclaunch.site import schema

BASE = """
class _Strict(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True, extra="forbid", protected_namespaces=())
"""


def twin() -> str:
    """Return the schema's source with pydantic in the place of msgspec."""
    source = re.sub(r"class _Strict\(.*?\n(?=\n\n)", BASE, inspect.getsource(schema), flags=re.DOTALL)
    source = source.replace("(_Strict, frozen=True, kw_only=True)", "(_Strict)").replace(
        "    schema:", "    schema_:"
    )
    return source.replace("from msgspec import Meta", "from pydantic import Field as Meta").replace(
        "msgspec", "pydantic"
    )


def seconds(code: str, folder: str) -> float:
    """Return the wall time of one Python process."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True, cwd=folder)
    return time.perf_counter() - start


def main(runs: int) -> None:
    codes = {"python": "pass", "msgspec": "import hpclaunch.site.schema", "pydantic": "import twin"}
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "twin.py").write_text(twin())
        for code in codes.values():  # once unmeasured: the disk's cache, the byte code
            seconds(code, folder)
        times: dict[str, list[float]] = {name: [] for name in codes}
        for _ in range(runs):
            for name, code in codes.items():
                times[name].append(seconds(code, folder))
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, value in median.items():
        print(f"{name:9} {value * 1000:6.1f} ms   {value / median['pydantic']:.2f} of pydantic's")
    own = {name: median[name] - median["python"] for name in ("msgspec", "pydantic")}
    ratio = own["msgspec"] / own["pydantic"]
    print(f"less the interpreter's own start, msgspec takes {ratio:.2f} of pydantic's time")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
