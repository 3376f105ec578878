"""The shell reader: commands, pipes, redirections, here-documents, variables; no text stops it."""

from __future__ import annotations

from hpclaunch.lint.batch_script import Script, read_script
from hpclaunch.shell.shell_reader import read_shell
from hpclaunch.shell.shell_syntax import Command
from tests.in_one_test import in_one_test


def commands(text: str) -> list[list[str]]:
    return [
        [word.visible for word in command.words] for command in read_shell(text).commands if command.words
    ]


def command(text: str, name: str) -> Command:
    return next(one for one in read_shell(text).commands if one.name == name)


@in_one_test(
    "text, words",
    [
        ("a b # c\nd", [["a", "b"], ["d"]]),
        ("a#b c", [["a#b", "c"]]),
        ("srun \\\n  -n 4 \\\r\n ./app", [["srun", "-n", "4", "./app"]]),
        ("a 'b c' \"d e\" f\\ g", [["a", "b c", "d e", "f g"]]),
        ("a $'x' ${b:-c d} e", [["a", "x", "", "e"]]),
        ("a; b && c || d & e", [["a"], ["b"], ["c"], ["d"], ["e"]]),
        ("for x in 1 2; do a; done", [["for", "x", "in", "1", "2"], ["a"]]),
        ("case $x in a | b) c ;; (d) e ;; *) f ;; esac\ng", [["case", "", "in"], ["c"], ["e"], ["f"], ["g"]]),
        ("f() { a; }\nfunction g { b; }\ng", [["a"], ["b"], ["g"]]),
        ("[[ $a =~ (b|c) ]] && e", [["[[", "", "=~", "(", "b", "|", "c", ")", "]]"], ["e"]]),
        ("[[ -n a && -n b ]]\nc", [["[[", "-n", "a", "&", "&", "-n", "b", "]]"], ["c"]]),
        ("((n = 1 + (2)))\na", [["a"]]),
        ("for ((i = 0; i < 2; i++)); do a; done", [["for"], ["a"]]),
        ("(a; b) > c", [["a"], ["b"]]),
        ("x=(1 '2 3'\n 4)\na", [["a"]]),
        ("a `b c` $(d $(e))", [["a", "", ""], ["b", "c"], ["d", ""], ["e"]]),
    ],
)  # fmt: skip
def test_words(text: str, words: list[list[str]]) -> None:
    assert commands(text) == words


def test_braces_may_hold_the_body_of_a_loop_over_numbers() -> None:
    assert read_shell("for ((i = 0; i < 2; i++)) { a; }\nb").misplaced == []
    assert read_shell("while a; }\nb").misplaced[:1] == [(1, "}: while of line 1 has no do")]


def test_lines_are_those_of_the_first_word() -> None:
    text = "a\n\n  b \\\n c\nd $(\n e\n)\n"
    assert [(one.name, one.line) for one in read_shell(text).commands] == [
        ("a", 1),
        ("b", 3),
        ("d", 5),
        ("e", 6),
    ]


def test_here_documents_are_no_commands() -> None:
    text = "cat <<A <<-'B'\none $x\nA\n\t$y two\n\tB\nthree\n"
    assert commands(text) == [["cat"], ["three"]]
    bodies = [redirect.body for redirect in command(text, "cat").redirects]
    assert bodies == ["one $x\n", "\t$y two\n"]
    assert [ref.name for ref in read_shell(text).refs] == ["x"]


@in_one_test(
    "text, out",
    [
        ("a | b", True),
        ("a |& b", True),
        ("a |\n b", True),
        ("a || b", False),
        ("{ a; } | b", True),
        ("(a) | b", True),
        ("if a; then a; fi | b", True),
        ("while a; do c; done < x | b", True),
        ("a > >(b)", False),
    ],
)
def test_what_goes_into_a_pipe(text: str, out: bool) -> None:
    assert command(text, "a").piped_out is out


@in_one_test("text, reads", [("a | b", True), ("a > >(b)", True), ("a && b", False), ("b", False)])
def test_what_reads_from_a_pipe(text: str, reads: bool) -> None:
    assert command(text, "b").piped_in is reads


@in_one_test(
    "text, redirects",
    [
        ("a 2>/dev/null", [("2", ">", "/dev/null")]),
        ("a >b 2>&1", [("", ">", "b"), ("2", ">&", "1")]),
        ("a &> b", [("", "&>", "b")]),
        ("a x2>b", [("", ">", "b")]),
        ("a <<< 'b c'", [("", "<<<", "b c")]),
        ("a < <(c)", [("", "<", "")]),
    ],
)
def test_redirections(text: str, redirects: list[tuple[str, str, str]]) -> None:
    found = command(text, "a").redirects
    assert [(one.fd, one.operator, one.target.visible) for one in found] == redirects


def expand(text: str) -> tuple[str | None, tuple[str, ...]]:
    script = read_script(text)
    word = command_in(script, "use").words[1]
    expanded = script.variables.expand(word)
    return expanded.text, expanded.unset


def command_in(script: Script, name: str) -> Command:
    return next(one for one in script.commands if one.name == name)


@in_one_test(
    "text, value",
    [
        ("A=1\nuse x$A", ("x1", ())),
        ("A=1\nA=2\nuse $A\nA=3", ("2", ())),
        ("A=1\nA=${A}2\nuse $A", ("12", ())),
        ("use x$B", ("x", ("B",))),
        ("A=$B\nuse $A", ("", ("B",))),
        ("A=$(b)\nuse $A", (None, ())),
        ("export A=1 B\nuse $A", ("1", ())),
        ("read -r A\nuse $A", (None, ())),
        ("use $HOME", (None, ())),
        ("A=1 b\nuse $A", ("", ("A",))),
        ("use ${B:-1}", (None, ())),
        ("A+=1\nuse $A", (None, ())),
        (r"use $'it\'s\n\xc3\xa9 \u00e9 \101'x", ("it's\n\u00e9 \u00e9 Ax", ())),
    ],
)
def test_values_of_words(text: str, value: tuple[str | None, tuple[str, ...]]) -> None:
    assert expand(text) == value


def test_values_that_grow_without_end_are_not_followed() -> None:
    lines = ["A0=xxxxxxxxxx", *(f"A{n + 1}=$A{n}$A{n}" for n in range(60)), "use $A60"]
    assert expand("\n".join(lines)) == (None, ())


def test_substitutions_without_end_are_read() -> None:
    for opening in ("$(", "${x:-", "((", "(", "`", '"$(', "{ ", "if ", "case x in ", "<(", "a=(", "[[ "):
        assert read_shell(opening * 3000).commands is not None
