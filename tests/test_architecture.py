"""The rules of the house that no linter knows: who imports whom, what starts light, what is never written."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from hpclaunch.cli.main import COMMANDS
from tests.in_one_test import in_one_test
from tests.parsed import nodes, parsed

pytestmark = pytest.mark.xdist_group("syntax trees")  # which one worker makes for all
ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "hpclaunch"
MODULES = sorted(PACKAGE.rglob("*.py"))
MAX_LINES = 50

# Imports go down only: a room may import rooms of a lower floor, and itself.
FLOORS: list[set[str]] = [
    {"__init__", "package_data"},
    {"errors"},
    {
        "atomic_file",
        "command_result",
        "cpuset",
        "framework_table",
        "json_document",
    }
    | {"amounts", "shell", "text_table", "walltime"},
    {"folders"},
    {"failures", "host", "pages", "remote", "scheduler"},
    {"topology"},
    {"site"},
    {"binding"},
    {"software"},
    {"plan"},
    {"check", "job", "lint", "scaling", "timeline"},
    {"observe"},
    {"port", "probes", "usage"},
    {"api"},
    {"study"},
    {"cli"},
    {"__main__"},
]
FLOOR_OF = {room: number for number, rooms in enumerate(FLOORS) for room in rooms}
# Only hosts start programs, and the programs that hpclaunch sends to other interpreters.
STARTS_PROGRAMS = {"subprocess", "pty", "multiprocessing", "asyncio"}
MAY_START_PROGRAMS = {"remote/look.py", "remote/probe.py", "remote/rank_stands.py", "remote/stage.py"} | {
    "remote/archive_reader.py",
    "remote/stage_images.py",
}
HEAVY = {
    "jinja2",
    "yaml",
    "numpy",
    "psutil",
    "msgspec",
    "mpi4py",
    "paramiko",
    "torch",
    "horovod",
}
TRAIN_MAY_IMPORT = {"numpy", "mpi4py", *sys.stdlib_module_names}
# In modules named torch_*, which the runner imports only where a framework is asked for.
TORCH_MAY_IMPORT = {"torch", "horovod"}
# Rooms with no effect on the world: data in, data out.
PURE = {"binding", "plan", "port", "scaling", "scheduler", "shell", "timeline"}


def room_of(path: Path) -> str:
    """The room of a module: its folder under hpclaunch/, or its own name at the top."""
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports(among: Iterable[ast.AST]) -> Iterator[tuple[int, str]]:
    """Yield (line, absolute module or ".") of each import among some nodes."""
    for node in among:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.module == "hpclaunch" and not node.level:
                yield from ((node.lineno, f"hpclaunch.{alias.name}") for alias in node.names)
            else:
                yield node.lineno, "." if node.level else str(node.module)


def at_import(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of the code that runs when a module is imported."""
    for node in ast.iter_child_nodes(tree):
        if not _late(node):
            yield node
            yield from at_import(node)


def _late(node: ast.AST) -> bool:
    """Whether the code in ``node`` does not run when the module is imported."""
    type_checking = isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    return type_checking or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)


def target_room(module: str) -> str | None:
    """The room that an absolute import of hpclaunch enters, None for other packages."""
    parts = module.split(".")
    if parts[0] != "hpclaunch":
        return None
    return (
        parts[1] if len(parts) > 1 and (PACKAGE / parts[1]).with_suffix("").exists() else _top_module(parts)
    )


def _top_module(parts: list[str]) -> str:
    named = len(parts) > 1 and (PACKAGE / f"{parts[1]}.py").exists()
    return parts[1] if named else "__init__"


def is_wrong(path: Path, module: str) -> bool:
    """Whether the module at ``path`` may not import that module."""
    room, package, target = room_of(path), module.split(".")[0], target_room(module)
    if room == "train":
        more = TORCH_MAY_IMPORT if path.name.startswith("torch_") else set()
        return module != "." and package not in TRAIN_MAY_IMPORT | more
    if module == "." or target == "train":  # relative imports are for train only, and nobody imports train
        return True
    if (room, target) == ("__init__", "api"):  # for type checkers; at run time when it is first used
        return False
    if target is not None:
        return target != room and FLOOR_OF[target] >= FLOOR_OF[room]
    starts_programs = room == "host" or path.relative_to(PACKAGE).as_posix() in MAY_START_PROGRAMS
    return package in STARTS_PROGRAMS and not starts_programs


def wrong_imports(path: Path, among: Iterable[ast.AST]) -> list[str]:
    """What this module imports against the rules of the house, as FILE:LINE messages."""
    name = path.relative_to(ROOT)
    return [f"{name}:{line}: imports {module}" for line, module in imports(among) if is_wrong(path, module)]


def test_imports_go_down_only() -> None:
    assert {room_of(path) for path in MODULES} <= {*FLOOR_OF, "train"}
    assert [message for path in MODULES for message in wrong_imports(path, nodes(path))] == []


@in_one_test(
    "module, source",
    [
        ("topology/x.py", "from hpclaunch.plan.request import JobRequest"),
        ("scheduler/x.py", "from hpclaunch.host.host_interface import Host"),
        ("scheduler/x.py", "def f():\n    import subprocess"),
        ("host/x.py", "from hpclaunch.scheduler import slurm"),
        ("walltime.py", "from hpclaunch import cpuset"),
        ("cli/x.py", "from hpclaunch.train import ring"),
        ("job/x.py", "from .model import JobRequest"),
        ("train/x.py", "from hpclaunch.errors import HpclaunchError"),
        ("train/x.py", "import psutil"),
        ("train/engine/x.py", "import torch"),
    ],
)
def test_a_wrong_import_is_found(module: str, source: str) -> None:
    assert wrong_imports(PACKAGE / module, list(ast.walk(ast.parse(source))))


@in_one_test(
    "module, source",
    [
        ("cli/x.py", "from hpclaunch.plan.request import JobRequest"),
        ("job/x.py", "from hpclaunch import __version__"),
        ("topology/x.py", "from hpclaunch.topology.node_topology import Core"),
        ("train/x.py", "import gzip\nimport numpy as np\nfrom . import ring\nfrom mpi4py import MPI"),
        ("train/engine/torch_x.py", "import torch"),
        ("host/x.py", "import subprocess"),
    ],
)
def test_a_right_import_is_not(module: str, source: str) -> None:
    assert wrong_imports(PACKAGE / module, list(ast.walk(ast.parse(source)))) == []


# Circles of modules inside one room; none may be added.
CIRCLES = [
    {"plan.request", "plan.settings_table"},
]


def module_of(path: Path) -> str:
    """The name of a module below hpclaunch; a folder's own code has the folder's name."""
    return ".".join(path.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__")


def imported_modules(path: Path, among: Iterable[ast.AST], known: set[str]) -> set[str]:
    """The modules of hpclaunch that a module imports, late and for type checkers, too."""
    own = path.relative_to(PACKAGE).parent.parts
    found = set()
    for node in among:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = own[: len(own) - node.level + 1] if node.level else ()
            start = ".".join((*(("hpclaunch", *above) if node.level else ()), *filter(None, [node.module])))
            found |= {start, *(f"{start}.{alias.name}" for alias in node.names)}
    return {name.removeprefix("hpclaunch.") for name in found} & known


def circles(graph: dict[str, set[str]]) -> list[set[str]]:
    """The sets of modules that reach one another by imports."""
    reached = {start: reachable(start, graph) for start in graph}
    together = {frozenset(a for a in reached[b] if b in reached[a]) for b in graph}
    return [set(one) for one in sorted(together, key=sorted) if len(one) > 1]


def reachable(start: str, graph: dict[str, set[str]]) -> set[str]:
    """The modules that ``start`` imports, directly or through others, and ``start``."""
    found, left = {start}, [start]
    while left:
        new = graph[left.pop()] - found
        found |= new
        left += new
    return found


def test_no_circle_of_modules_is_added_inside_a_room() -> None:
    known = {module_of(path) for path in MODULES}
    graph: dict[str, set[str]] = {}
    for path in MODULES:
        room = room_of(path)
        within = {name for name in known if name.partition(".")[0] == room and name != room}
        # A folder's __init__ names its modules for others; its modules do not import it.
        graph[module_of(path)] = (
            imported_modules(path, nodes(path), within) if path.stem != "__init__" else set()
        )
    assert [one for one in circles(graph) if one not in CIRCLES] == []


def test_circles_are_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"d", "a"}}
    assert circles(graph) == [{"b", "c"}]
    late = ast.walk(ast.parse("def f():\n from hpclaunch.plan import request\n import hpclaunch.job.store"))
    known = {"plan.request", "job.store", "job"}
    assert imported_modules(PACKAGE / "plan/x.py", late, known) == {"plan.request", "job.store"}
    near = ast.walk(ast.parse("from .loop import run\nfrom ..data import batches"))
    known = {"train.engine.loop", "train.data.batches", "train.data"}
    assert imported_modules(PACKAGE / "train/engine/x.py", near, known) == known


def test_no_two_modules_share_a_name() -> None:
    """A name says what is in a module; that of a room or a command is nobody else's."""
    rooms = {path.name for path in PACKAGE.rglob("*") if path.is_dir()}
    ours = [path for path in MODULES if not path.stem.startswith("__")]
    stems = [path.stem for path in ours]
    assert {stem for stem in stems if stems.count(stem) > 1} == set()
    assert {path.stem for path in ours if path.parent.name != "cli"} & rooms == set()


def test_files_of_the_command_line_are_named_after_their_command() -> None:
    """What commands share starts with an underscore; ``main`` is the group."""
    files = {path.stem for path in (PACKAGE / "cli").glob("*.py") if not path.stem.startswith("_")}
    assert files == {*COMMANDS, "main"}


def test_nothing_public_has_the_name_of_a_room() -> None:
    rooms = {path.name for path in PACKAGE.iterdir() if path.is_dir()}
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {node.name}"
        for path in MODULES
        for node in parsed(path).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in rooms
    ]
    assert found == []


def test_commands_import_heavy_modules_late() -> None:
    modules = [PACKAGE / "__init__.py", PACKAGE / "__main__.py", *sorted((PACKAGE / "cli").rglob("*.py"))]
    early = [
        f"{path}:{line}: {name}"
        for path in modules
        for line, name in imports(at_import(parsed(path)))
        if name.split(".")[0] in HEAVY
    ]
    assert early == []


# What a pure room would need to touch the world; names of paths (PurePath) are data.
_WORLD = STARTS_PROGRAMS | {"http", "io", "os", "shutil", "socket", "sys", "tempfile", "time", "urllib"}
_WORLDLY_CALLS = {"open", "print", "input", "exec", "eval", "__import__"}


def impure(path: Path, among: Sequence[ast.AST]) -> list[str]:
    """What a module of a pure room does to the world, as FILE:LINE messages."""
    name = path.relative_to(ROOT)
    found = [
        f"{name}:{line}: imports {module}"
        for line, module in imports(among)
        if module.split(".")[0] in _WORLD
    ]
    for node in among:
        if isinstance(node, ast.ImportFrom) and node.module == "pathlib":
            found += [f"{name}:{node.lineno}: Path" for alias in node.names if alias.name == "Path"]
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _WORLDLY_CALLS:
            found.append(f"{name}:{node.lineno}: calls {node.func.id}")
    return found


def test_pure_rooms_touch_nothing() -> None:
    modules = [path for path in MODULES if room_of(path) in PURE]
    assert {room_of(path) for path in modules} == PURE
    assert [message for path in modules for message in impure(path, nodes(path))] == []


@in_one_test(
    "source",
    [
        "import os",
        "def f():\n    import subprocess",
        "from pathlib import Path",
        "def f(name):\n    return open(name)",
        "print('x')",
    ],
)
def test_an_impure_module_is_found(source: str) -> None:
    assert impure(PACKAGE / "plan" / "x.py", list(ast.walk(ast.parse(source))))


def long_functions(path: Path) -> list[str]:
    """Functions past ``MAX_LINES`` lines without a comment ``# long:`` that says why."""
    lines = path.read_text().splitlines()
    found = []
    for node in nodes(path):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = int(node.end_lineno or node.lineno) - node.lineno + 1
            text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
            if length > MAX_LINES and "# long: " not in text:
                found.append(f"{path}:{node.lineno}: {node.name} has {length} lines")
    return found


def test_functions_are_short_or_say_why_not() -> None:
    assert [message for path in MODULES for message in long_functions(path)] == []


def dependencies() -> Iterator[str]:
    """The packages that installing hpclaunch, alone or with an extra of users, brings."""
    text = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]")[0].partition("[project]")[2]
    for name, words in re.findall(r"^([a-z]+) = (\[[^]]*(?:\[[^]]*\][^]]*)*\])", text, re.MULTILINE):
        if name in ("dependencies", "runner", "openmpi", "mpich", "ssh", "torch"):
            yield from (re.split(r"[<>=]", each)[0] for each in ast.literal_eval(words))


def test_every_dependency_is_imported() -> None:
    """Or is a program that the job starts: the MPI from wheels."""
    imported = {module.split(".")[0] for path in MODULES for _, module in imports(nodes(path))}
    modules = {"pyyaml": "yaml"}
    lacking = {name for name in dependencies() if modules.get(name, name) not in imported}
    assert lacking == {"openmpi", "mpich"}


def test_no_message_installs_hpclaunch_from_an_index_that_does_not_have_it() -> None:
    texts = [
        *MODULES,
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "benchmarks").glob("*.py"),
    ]
    wrong = re.compile(r"pip install\s+\S*hpclaunch")
    assert [str(path) for path in texts if wrong.search(path.read_text())] == []


# Written in two halves, so that this file does not hold what it looks for.
NEVER_WRITTEN = [
    left + right
    for left, right in [
        ("/root", "/"),
        ("py", "pi.org"),
        ("python", "hosted"),
        ("npm", "js.org"),
        ("proxy.", "golang"),
        ("deb.", "debian.org"),
    ]
]
SHARED_FOLDER = "../" + "shared"
ONLY_HERE = {".ci/run"}


def repository_files() -> list[Path]:
    """Every file of the repository that git tracks or would track."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, text=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def test_no_file_tells_of_a_developers_machine_or_a_registry() -> None:
    files = repository_files()
    found = []
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        text = path.read_bytes().decode(errors="replace")
        here = [str(ROOT)] if len(ROOT.parts) > 2 else []  # /repo and the like mean nothing
        words = [*NEVER_WRITTEN, *here, *([] if name in ONLY_HERE else [SHARED_FOLDER])]
        found += [f"{name}: {word}" for word in words if word in text]
    assert PACKAGE / "errors.py" in files
    assert found == []


def test_structs_have_no_annotations_that_msgspec_must_compile() -> None:
    late = [
        str(path.relative_to(PACKAGE).with_suffix(""))
        for path in MODULES
        if "msgspec.Struct" in (text := path.read_text())
        and re.search(r"^from __future__ import annotations$", text, re.MULTILINE)
    ]
    assert late == []
