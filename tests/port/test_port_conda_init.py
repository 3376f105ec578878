"""The block of conda init is one thing, and what stands in or near it is another."""

from __future__ import annotations

from tests.in_one_test import in_one_test
from tests.port.test_port_once import to_do

BLOCK = """__conda_setup="$('/opt/c/bin/conda' 'shell.bash' 'hook' 2> /dev/null)"
if [ $? -eq 0 ]; then
    eval "$__conda_setup"
else
    if [ -f "/opt/c/etc/profile.d/conda.sh" ]; then
        . "/opt/c/etc/profile.d/conda.sh"
    else
        export PATH="/opt/c/bin:$PATH"
    fi
fi
unset __conda_setup
"""
MARKED = f"# >>> conda initialize >>>\n!! managed by conda init !!\n{BLOCK}# <<< conda initialize <<<\n"


@in_one_test("block", [BLOCK, MARKED])
def test_the_block_is_one_thing_with_the_line_of_its_environment(block: str) -> None:
    for to in ("isambard-ai", "polaris"):
        with_env = to_do(f"{block}conda activate mine\nsrun python a.py", to)
        alone = to_do("conda activate mine\nsrun python a.py", to)
        assert with_env.count("\n") == alone.count("\n")
        assert to_do(f"{block}srun python a.py", to).count("nvironment") == alone.count("nvironment")


@in_one_test(
    "block, said",
    [
        (BLOCK.replace("unset", "cp a b\nunset"), "a job file has no place for it"),
        (BLOCK.replace("unset", "export PATH=/opt/x/bin:$PATH:/y\nunset"), "PATH: the software"),
        ("export PATH=/opt/c/bin:$PATH\n", "PATH: the software"),
        ("unset __conda_setup\n", "line 3"),
    ],
)
def test_what_conda_init_does_not_write_is_named(block: str, said: str) -> None:
    assert said in to_do(f"{block}conda activate mine\nsrun python a.py")
