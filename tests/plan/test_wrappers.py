"""What stands before a program: which word of a command is the program's first."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hpclaunch.plan.script_commands import WRAPPERS, Wrapper, inner_words, program_at, unwrap
from tests.in_one_test import in_one_test

PLAIN = st.text("abz/._", min_size=1).filter(lambda word: word not in WRAPPERS)
VALUE = st.text("abz0,=:", min_size=1)


@in_one_test(
    "line, program",
    [
        ("python -m package --lr 1", "python -m package --lr 1"),
        ("uv run train.py --lr 1", "python train.py --lr 1"),
        ("uv run --with torch,numpy -p 3.12 python train.py", "python train.py"),
        ("uv run --script tool --lr 1", "python tool --lr 1"),
        ("uv run -m package", "python -m package"),
        ("uv --project p run --frozen -- pytest", "pytest"),
        ("poetry -C folder run python train.py", "python train.py"),
        ("pixi run -e cuda python train.py", "python train.py"),
        ("conda run -n base --no-capture-output python train.py", "python train.py"),
        ("conda run -vn base python train.py", "python train.py"),
        ("/opt/bin/micromamba run -r /r -p /p ./a.out", "./a.out"),
        ("pipenv run torchrun train.py", "torchrun train.py"),
        ("pipenv --python 3.11 run python train.py", "python train.py"),
        ("pdm run -p folder python train.py", "python train.py"),
        ("hatch -e cuda run python train.py", "python train.py"),
        ("pipenv install torch", "pipenv install torch"),
        ("nohup env A=b B= python train.py", "python train.py"),
        ("env -i -u A PATH=/bin ./a.out", "./a.out"),
        ("/usr/bin/time -v -o file ./a.out", "./a.out"),
        ("nice -n -5 nice -10 ./a.out", "./a.out"),
        ("numactl --cpunodebind=0 -m 0 -l ./a.out", "./a.out"),
        ("taskset -c 0-3 ./a.out", "./a.out"),
        ("stdbuf -oL -e 0 ./a.out", "./a.out"),
        ("timeout -k 5 --signal=INT 1h ./a.out 1h", "./a.out 1h"),
        ("exec -a name torchrun train.py", "torchrun train.py"),
        ("command -v torchrun", "command -v torchrun"),
        ("env -S python", "env -S python"),
        ("uv pip install torch", "uv pip install torch"),
        ("conda activate base", "conda activate base"),
        ("nohup", "nohup"),
        ("./nohup.out nohup", "./nohup.out nohup"),
    ],
)
def test_the_program_behind_a_wrapper(line: str, program: str) -> None:
    assert " ".join(inner_words(tuple(line.split()))) == program


@st.composite
def wrapped(draw: st.DrawFn) -> tuple[str, ...]:
    """A wrapper with options of its table before no program."""
    name = draw(st.sampled_from(sorted(WRAPPERS)))
    row = WRAPPERS[name]
    before = draw(options(row)) if row.commands else ()
    sub = (draw(st.sampled_from(row.commands)),) if row.commands else ()
    names = draw(st.lists(st.sampled_from(["A=1", "B_2="]), max_size=2)) if row.assignments else []
    words = draw(st.lists(VALUE, min_size=row.words, max_size=row.words))
    return (name, *before, *sub, *draw(options(row)), *names, *words)


@st.composite
def options(draw: st.DrawFn, row: Wrapper) -> tuple[str, ...]:
    """Options of a wrapper with their values, in both spellings."""
    found: list[str] = []
    for option in draw(st.lists(st.sampled_from(row.values), max_size=3)) if row.values else ():
        value = draw(VALUE)
        joined = f"{option}={value}" if option.startswith("--") else f"{option}{value}"
        found += draw(st.sampled_from([[option, value], [joined]]))
    return tuple(found)


@given(st.lists(wrapped(), max_size=3), PLAIN, st.lists(st.text()))
def test_any_wrappers_end_at_the_program(
    wrappers: list[tuple[str, ...]], program: str, more: list[str]
) -> None:
    words = tuple(word for one in wrappers for word in one)
    if program.endswith(".py") and any(one[0] == "uv" for one in wrappers):
        program = "a"  # which uv starts with Python
    assert program_at((*words, program, *more)) == len(words)


@given(st.lists(st.sampled_from([*WRAPPERS, "run", "-n", "-m", "--", "-", "x.py", "A=1", ""])))
def test_no_words_are_too_strange(words: list[str]) -> None:
    argv = tuple(words)
    found = unwrap(argv)
    assert 0 <= found.at <= max(0, len(argv) - 1)
    assert found.options + argv[found.at :] == argv
    assert found.argv[len(found.argv) - len(argv) + found.at :] == argv[found.at :]


def test_which_wrappers_bring_python_and_change_the_folder() -> None:
    found = unwrap(("nohup", "conda", "run", "--cwd", "x", "python", "t.py"))
    assert (found.wrappers, found.python, found.moved) == (("nohup", "conda"), "conda run", True)
    found = unwrap(("nice", "python", "-C", "t.py"))
    assert (found.wrappers, found.python, found.moved) == (("nice",), None, False)
