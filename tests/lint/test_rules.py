"""Every rule finds what it is for, at its line, and passes what only looks alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from hpclaunch.lint.lint_script import all_rules
from hpclaunch.site.load_profile import load_site
from hpclaunch.software.known_pairs import first_cuda
from tests.in_one_test import in_one_test
from tests.lint.cases import DATA, SCRIPTS, findings, places, read_case
from tests.plan.test_golden import cases, of_a_program, script_needs_files, script_of

GOLDEN = sorted((Path(__file__).parent.parent / "golden").glob("*.sh"))
RULES = [rule.id for rule in all_rules()]


@in_one_test("path", SCRIPTS)
def test_exactly_the_expected_is_found(path: Path) -> None:
    case = read_case(path)
    found = findings(case.text, case.site)
    assert places(found, path.stem.partition(".")[0]) == sorted(
        case.expected, key=lambda place: (place[0] or 0, place[1])
    ), found


@in_one_test("rule", RULES)
def test_every_rule_has_scripts_that_trigger_it_and_near_misses(rule: str) -> None:
    named = [path for path in SCRIPTS if path.stem.partition(".")[0] == rule]
    near = [path for path in named if path.stem.partition(".")[2].startswith("near-")]
    broken = [path for path in named if path not in near]
    assert len(broken) >= 2
    assert all(rule in [found for _, found in read_case(path).expected] for path in broken)
    assert near
    assert all(rule not in [found for _, found in read_case(path).expected] for path in near)


def test_every_script_is_named_after_a_rule_or_is_a_twin() -> None:
    assert {path.stem.partition(".")[0] for path in SCRIPTS} <= {*RULES, "script"}


@pytest.mark.slow
@in_one_test("path", GOLDEN)
def test_nothing_is_found_in_our_own_scripts(path: Path, tmp_path: Path) -> None:
    found = findings(path.read_text(), path.stem.partition(".")[0], tmp_path)
    # The modules of a machine that is switched off are old.
    assert [one for one in found if one.rule != "module-old"] == []


@pytest.mark.slow
@in_one_test("name", cases())
def test_nothing_is_found_in_our_plain_scripts(name: str, tmp_path: Path) -> None:
    if script_needs_files(name):
        return
    found = findings(script_of(of_a_program(name), plain=True), name.partition(".")[0], tmp_path)
    assert [one for one in found if one.rule != "module-old"] == []


@in_one_test("rule", all_rules())
def test_a_rule_says_what_why_and_what_would_be_right(rule: object) -> None:
    assert [
        name for name in ("what", "why", "remedy", "bad", "good") if not getattr(rule, name).strip()
    ] == []


@in_one_test("name, severity", [("option", "error"), ("path", "warning"), ("variable", "warning")])
def test_a_program_that_srun_finds_without_path_is_a_warning(name: str, severity: str) -> None:
    case = read_case(DATA / f"export-without-all.{name}.sh")
    found = [one for one in findings(case.text, case.site) if one.rule == "export-without-all"]
    assert [one.severity for one in found] == [severity]
    assert ": /project/bin/app starts" in found[0].message or name != "variable"


@in_one_test(
    "script, severity",
    [
        ("filesystems", "error"),
        ("constraint", "error"),
        ("constraint-without-gpus", "note"),
        ("advised", "note"),
        ("account", "warning"),
    ],
)
def test_only_what_the_site_refuses_without_is_an_error(script: str, severity: str) -> None:
    case = read_case(DATA / f"directive-missing.{script}.sh")
    found = [one.severity for one in findings(case.text, case.site) if one.rule == "directive-missing"]
    assert found == [severity]


@in_one_test(
    "script, severity",
    [
        ("directive-stray-word.torque", "note"),
        ("directive-stray-word.pbs", "error"),
        ("directive-stray-word.words", "error"),
        ("directive-stray-word.sge", "warning"),
        ("directive-stray-word.name", "warning"),
        ("placeholder.dots", "warning"),
        ("options-contradict.torque", "warning"),
        ("options-contradict.nodes-of-pbs", "error"),
        ("scheduler-variable-unset.array", "note"),
        ("scheduler-variable-unset.array-off", "warning"),
        ("scheduler-variable-unset.printed", "note"),
        ("scheduler-variable-unset.usage", "note"),
        ("scheduler-variable-unset.sge-off", "warning"),
        ("scheduler-variable-unset.switched-off", "warning"),
        ("variable-undefined.stops", "warning"),
        ("variable-undefined.environment", "note"),
        ("variable-undefined.goes-on", "note"),
        ("master-port-fixed.default", "warning"),
        ("master-port-fixed.own", "note"),
        ("master-port-fixed.array", "warning"),
        ("master-port-fixed.array-of-one", "note"),
        ("gpus-overridden.several", "warning"),
        ("one-cpu-per-gpu-rank.site", "warning"),
        ("one-cpu-per-gpu-rank.site-program", "note"),
        ("one-process-for-tasks.one-node", "warning"),
        ("one-process-for-tasks.cores-with-gpu", "note"),
        ("one-process-for-tasks.spread", "warning"),
        ("one-process-for-tasks.lightning", "warning"),
        ("rank-variable-too-early.tasks", "error"),
        ("rank-variable-too-early.dynamic", "note"),
        ("node-local-once.virtualenv", "warning"),
        ("node-local-once.options", "warning"),
        ("node-local-once.mkdir", "note"),
    ],
)
def test_a_finding_is_as_grave_as_it_is_certain(script: str, severity: str) -> None:
    case = read_case(DATA / f"{script}.sh")
    rule = script.partition(".")[0]
    found = findings(case.text, case.site)
    assert [one.severity for one in found if one.rule == rule] == [severity]


def test_gpus_that_programs_share_out_are_notes() -> None:
    case = read_case(DATA / "gpus-overridden.in-turn.sh")
    found = [one.severity for one in findings(case.text, case.site) if one.rule == "gpus-overridden"]
    assert found == ["note", "note"]


def test_one_finding_names_all_lines_that_come_too_late() -> None:
    case = read_case(DATA / "directive-ignored.several.sh")
    found = [one.message for one in findings(case.text, case.site) if one.rule == "directive-ignored"]
    assert found == ["-l nodes=1:ppn=1 comes after the first command and is ignored, also lines 4, 5"]


@pytest.mark.parametrize(
    ("text", "severity"),
    [("#!/bin/bash\nsrun ./app\n", "note"), ("#!/usr/bin/perl\nprint 1;\n", "warning"), (" \n", "warning")],
)
def test_a_script_that_can_be_read_needs_no_directives(text: str, severity: str) -> None:
    assert [one.severity for one in findings(text, "unknown") if one.rule == "no-directives"] == [severity]


@in_one_test(
    "path, said",
    [
        ("/home/jdoe/train", "/home/jdoe/train is a fixed path, of one user or group"),
        ("/home/hltcoe/jdoe/train", "/home/hltcoe/jdoe is a fixed path, of one user or group"),
        ("/storage/home/ice1/jdoe", "/storage/home/ice1/jdoe is a fixed path, of one user or group"),
        ("/home/jdoe/miniconda3/bin", "/home/jdoe is the home of jdoe"),
        ("/home/jdoe/.cache/torch", "/home/jdoe is the home of jdoe"),
        ("/home/jdoe/train.py", "/home/jdoe is the home of jdoe"),
        ("/home/jdoe/v1.2/train", "/home/jdoe/v1.2 is a fixed path, of one user or group"),
        ("/home/jdoe/$RUN", "/home/jdoe is a fixed path, of one user or group"),
    ],
)
def test_a_folder_of_home_is_a_persons_only_where_the_script_shows_it(path: str, said: str) -> None:
    found = findings(f"#!/bin/bash\n#SBATCH -N1\nls {path}\n", "unknown")
    assert [one.message for one in found if one.rule == "personal-path"] == [said]


def test_an_absolute_folder_is_missing_only_where_the_one_above_it_is_here(tmp_path: Path) -> None:
    for folder, missing in (
        (tmp_path / "logs", True),
        (tmp_path / "other" / "logs", False),  # another machine may have both
        (Path("/home/no-such-user"), False),  # each machine has a /home
        (tmp_path / "other" / "%j", True),
        (tmp_path, False),
    ):
        text = f"#!/bin/bash\n#SBATCH --output={folder}/out.txt\nsrun ./app\n"
        found = findings(text, "unknown", tmp_path)
        assert ("output-folder-missing" in {one.rule for one in found}) is missing, folder


MENDED: dict[str, tuple[int | None, str, str, str]] = {
    "#PBS -d /path/to/run\n./app": (1, "placeholder", "warning", "/path/to/run"),
    "#SBATCH --output=/path/to/logs/%j.out\n./app": (1, "placeholder", "warning", "/path/to/logs"),
    "#SBATCH --output=logs/<name>.out\n./app": (1, "placeholder", "note", "<name>"),
    "#PBS -o /path/to/logs\n./app": (1, "placeholder", "note", "/path/to/logs"),
    "#PBS -j oe -o </path/to/file; SEE BELOW>\n./app": (1, "placeholder", "note", "-o </path"),
    ".../Rscript --vanilla a.R": (1, "placeholder", "warning", "is to be filled in"),
    "#SBATCH -N1\n## Write your program here": (None, "nothing-started", "warning", "no command"),
    "#SBATCH -N1\n##SBATCH -n2": (None, "nothing-started", "note", "no command"),
    'cd ~\nrun="gunzip -c $TASK_ID.gz > x"': (
        2,
        "nothing-started",
        "warning",
        "the text in run is never run",
    ),
    "#SBATCH -mem=4G\n./app": (1, "option-value-refused", "error", "reads as -m em=4G"),
    "#SBATCH -p dict_keys([67, 68...\n./app": (1, "directive-stray-word", "error", "68..."),
    "**#$-cwd**\n./app": (1, "directive-not-read", "warning", "signs before the #"),
    "./app \\ # the data\n  --lr 1": (1, "continuation-blank", "error", "a comment behind the backslash"),
    "conda ~/conda/bin/deactivate": (1, "command-refused", "error", "conda has no such command"),
    "module force purge": (1, "command-refused", "error", "the name of an option"),
    "python -batch a.py": (1, "command-refused", "error", "letter by letter"),
    "srun -n 2 python3 -data x": (1, "command-refused", "error", "letter by letter"),
    "cp ../a.zip && unzip a.zip": (1, "command-refused", "error", "no destination"),
    "export PATH='/opt/bin:$PATH'": (1, "command-refused", "error", "in single quotes"),
    "export LD_LIBRARY_PATH='/opt/lib:$LD_LIBRARY_PATH'": (1, "command-misread", "error", "in single quotes"),
    'P=`Rscript -e \'system.file("a.R", package="b")\'`': (1, "command-misread", "error", "[1]"),
    "#SBATCH -N1\nparallel -j $N 'Rscript a.R'": (2, "command-misread", "warning", "without :::"),
    "#SBATCH -N1\nexec > log\nparallel gzip\nexec < list": (3, "command-misread", "warning", "without :::"),
    "#SBATCH -N1\n(exec < list; cat)\nparallel gzip": (3, "command-misread", "warning", "without :::"),
    "#SBATCH -N1\nexec 3< list\nparallel gzip 16< a": (3, "command-misread", "warning", "without :::"),
    "python a.py --name b --data_dir": (1, "command-misread", "warning", "no value"),
    "#SBATCH --mem=\n./app": (1, "option-value-refused", "warning", "without a value"),
    "#SBATCH --time=\n./app": (1, "option-value-refused", "warning", "without a value"),
    "#PBS -l walltime=\n./app": (1, "option-value-refused", "warning", "without a value"),
    "#SBATCH --gpus:tesla:4\n./app": (1, "directive-unknown", "error", "no such option"),
    "#SBATCH --repo=m1\n./app": (1, "directive-unknown", "error", "--repo"),
    "#SBATCH --mem-per-cpu=1\n./app": (1, "unit-missing", "warning", "megabytes"),
    "#$ -N 10_a\n./app": (1, "option-value-refused", "error", "no digit"),
    "#$ -cwd\\\n./app": (1, "directive-unknown", "error", "no such option"),
    "#$ -t ?\n./app": (1, "placeholder", "warning", "-t ?"),
    "#BSUB -q QUEUE_YOU_USE\n./app": (1, "placeholder", "warning", "QUEUE_YOU_USE"),
    "ADD SCRIPT TO RUN HERE": (1, "placeholder", "warning", "ADD SCRIPT"),
    "python MY_PATH/a.py": (1, "placeholder", "warning", "MY_PATH"),
    'bash -c "cd /x" && python a.py': (1, "activation-without-effect", "error", "folder"),
    "PATH=/opt/x\nPATH=$PATH:/opt/y\nls": (1, "command-refused", "error", "no more in PATH"),
    "#SBATCH -n4\nsrun -n4 ./a --rank $SLURM_PROCID": (2, "rank-variable-too-early", "error", "one value"),
    "apptainer run web.sif --bind /data:/data": (1, "command-refused", "error", "behind the image"),
    "singularity exec --nv $SIF python a.py --bind $IN:/in": (
        1,
        "command-refused",
        "error",
        "behind the image",
    ),
    "apptainer exec --bind /d a.sif python a.py --nv": (1, "command-refused", "error", "behind the image"),
    "docker run --rm -u 1:1 a/b:1 ./x -v /data:/data": (1, "command-refused", "error", "behind the image"),
    "podman run --rm web --gpus all": (1, "command-refused", "error", "behind the image"),
    "shifter --module=gpu ./x --image=docker:a:1": (1, "command-refused", "error", "behind the program"),
    "#SBATCH -N1\ncd /data/run --gpu 3\n./app": (2, "command-refused", "error", "bash 4.4"),
    "cd -P $HOME/a b": (1, "command-refused", "error", "refuse a second word"),
    "bash <<'EOF'\ncd a b\nEOF": (2, "command-refused", "error", "refuse a second word"),
    "cd 'a' \"b c\" || exit 1": (1, "command-refused", "error", "refuse a second word"),
    "X= $(hostname)": (1, "assignment-space", "error", "not set"),
    "A=$(sbatch a.sh)\nsbatch -d afterok:$A b.sh": (1, "command-refused", "error", "answers"),
    "A=$(sbatch a.sh)\nsbatch --dependency=afterok:$A b.sh": (
        1,
        "command-refused",
        "error",
        "afterok:$A b.sh",
    ),
    "bsub job.lsf": (1, "command-misread", "warning", "LSB_BSUB_PARSE_SCRIPT"),
    "jsrun -n4 -c7 ./app": (1, "command-misread", "warning", "one core"),
    "#$ -cwd\n#$PY a.py -n 2": (2, "directive-stray-word", "warning", "joined to #$"),
    "#PBS -N 'a\n./app": (1, "directive-stray-word", "error", "not closed"),
    "#BSUB -o a.%J\n#BSUB -u a@b.org": (2, "options-contradict", "note", "one of -N, -Ne, -B"),
    "#SBATCH --mem=4G\njava -Xmx4g -jar a.jar": (2, "java-heap-over-memory", "note", "all of --mem=4G"),
    "#SBATCH --mem=4G\njava -Xmx5g -jar a.jar": (2, "java-heap-over-memory", "warning", "all of --mem=4G"),
    "#$ -l h_rt=36\n./app": (1, "unit-missing", "warning", "seconds"),
    "sed 's/a/b/' <file>": (1, "placeholder", "warning", "<file>"),
    "./app || exit 1\n#SBATCH -N1": (2, "directive-ignored", "error", "-N1"),
    "bash -c '. env/bin/activate; exec bash -i'": (1, "activation-without-effect", "error", "second shell"),
    "#PBS -q a\n# cd $PBS_O_WORKDIR\npython a.py": (3, "submit-folder-not-entered", "warning", "line 3 is a"),
    'module load impi\necho "mpirun -x N=1" > a': (2, "launcher-option-unknown", "error", "of Open MPI"),
    "module load openmpi\nmpirun -genv N 1 ./a": (2, "launcher-option-unknown", "error", "of Intel MPI"),
    "#BSUB \u2013n 4\n./app": (1, "directive-stray-word", "warning", "a dash of a text"),
    "#BSUB -J a b\n./app": (1, "directive-stray-word", "warning", "no such option"),
    "#PBS \u2013l nodes=1\n./app": (1, "directive-stray-word", "warning", "a dash of a text"),
    "#PBS \u2013l nodes=1\n#PBS -l select=1\n./app": (1, "directive-stray-word", "error", "a dash of a text"),
    "#SBATCH -\u2013ntasks=4\n./app": (1, "directive-stray-word", "error", "a dash of a text"),
    "#BSUB -npernode 40\n./app": (1, "option-value-refused", "error", "reads as -n pernode"),
    "#PBS -npernode 40\n./app": (1, "directive-unknown", "warning", "-npernode 40"),
    "#PBS -ppn 4\n./app": (1, "option-value-refused", "error", "write a number"),
    "#$ -npernode 40\n./app": (1, "directive-unknown", "warning", "-npernode 40"),
    "#$ -umask 22\n./app": (1, "directive-unknown", "warning", "-umask 22"),
    "#SBATCH --share\n./app": (1, "directive-unknown", "error", "--share: no such option"),
    "#SBATCH --pty\n./app": (1, "directive-unknown", "error", "--pty: no such option"),
    "#SBATCH --x11=batch\n./app": (1, "directive-unknown", "warning", "--x11=batch: no such option"),
    "#SBATCH -u\n./app": (1, "directive-unknown", "error", "-u: no such option"),
    "#SBATCH -gres=gpu:1\n./app": (1, "option-value-refused", "error", "reads as -g res=gpu:1"),
    "#SBATCH -exclusive\n./app": (1, "option-value-refused", "warning", "reads as -e xclusive"),
    "#PBS -N=run\n./app": (1, "directive-equals", "warning", "'=run'"),
    "#PBS -j=oe\n./app": (1, "directive-equals", "error", "'=oe'"),
    "#PBS -A=run\n./app": (1, "directive-equals", "warning", "'=run'"),
    "#$ -pe mpi 4\n# $ -cwd\n./app": (2, "directive-not-read", "note", "takes it for a comment"),
    "#SBATCH --nodes={{ nodes }}\n./app": (1, "placeholder", "note", "--nodes={{ nodes }} is to be"),
    "#SBATCH -t <%= t %>\n./app": (1, "placeholder", "note", "-t <%= t %> is to be"),
    "#SBATCH -t 1\n/home/ann/a /home/joe/b": (2, "personal-path", "note", "and so is /home/joe/b"),
    "#$ -pe 4\n./app": (1, "option-value-refused", "error", "the name of the environment"),
    "#BSUB -e $LSB_JOBID.err\n./app": (1, "directive-variable", "warning", "%J and %I"),
    "#PBS -J 1-2\n./app $PBS_ARRAYID": (2, "scheduler-variable-foreign", "warning", "PBS Professional"),
    "#PBS -t 1-2\n./app $PBS_ARRAY_INDEX": (2, "scheduler-variable-foreign", "warning", "TORQUE"),
    "#PBS -J 1-2\necho $PBS_ARRAYID": (2, "scheduler-variable-foreign", "note", "PBS Professional"),
    "#SBATCH -N2\nmpirun -np $SLURM_TASKS_PER_NODE ./a": (2, "command-misread", "warning", "4(x2)"),
    "#SBATCH -N2\necho $((SLURM_JOB_CPUS_PER_NODE / 2))\nN=$((SLURM_JOB_CPUS_PER_NODE / 2))": (
        3,
        "command-refused",
        "error",
        "4(x2)",
    ),
    "exec bash <<'EOF'\ncd a b\nEOF": (2, "command-refused", "error", "refuse a second word"),
    "#$ -S /bin/csh\nsource setup.sh\n./app": (2, "command-refused", "warning", "this file is for sh"),
    "#$ -S /bin/csh\nsource ~/.bashrc\n./app": (2, "command-refused", "error", "this file is for bash"),
    "#SBATCH -N1 -n8 --gpus-per-node=4 --gpu-bind=none\nsrun python a.py": (
        2,
        "ranks-share-gpus",
        "warning",
        "8",
    ),
}


NO_COMMANDS = [
    "EVAL_DATA_PATH=./example_data/video.json",
    "RUN_CONF=./run.yaml",
    "OUT=./results",
    "PY=python3",
]


@pytest.mark.parametrize("text", NO_COMMANDS)
def test_a_path_of_data_is_no_command_that_was_to_be_run(text: str) -> None:
    found = findings(f"#!/bin/bash\n{text}\nexport LOG=/tmp/$SLURM_JOB_ID\n", "unknown")
    assert "nothing-started" not in {one.rule for one in found}


@pytest.mark.parametrize("text", MENDED)
def test_what_scripts_of_others_were_seen_to_do(text: str) -> None:
    line, rule, severity, words = MENDED[text]
    found = [one for one in findings(f"#!/bin/bash\n{text}\n", "unknown") if one.rule == rule]
    assert [(one.line, one.severity) for one in found] == [(line and line + 1, severity)]
    assert words in found[0].message


@pytest.mark.parametrize(
    "text",
    [
        "#PBS -q a\ncd $PBS_O_WORKDIR\npython a.py",
        "exec 16> lock\nflock 16",
        "./app 16 > out.log",
        "./app 2> out.log",
        "python -ubOO a.py -batch",
        "conda create -n a python -y",
        "python -Wignore a.py",
        "cp a.zip b",
        "cp $FILES",
        'bash -c "cd /x" && echo done',
        "bash -c 'cd /x' 2>&1 && echo done",
        "OLD=$PATH\nPATH=/x\n./app\nPATH=$OLD",
        "PATH=/opt/x\nexport PATH=$PATH:/usr/bin:/bin\nls",
        "#SBATCH -n4 -c2\nsrun -n1 ./a --rank $SLURM_PROCID",
        "apptainer run web.sif --bind HOST",
        "apptainer exec web.sif gunicorn app:app --bind 0.0.0.0:80",
        "apptainer exec $IMAGE app --bind tcp://0.0.0.0:5555",
        "apptainer exec web.sif gunicorn app:app --bind unix:/tmp/web.sock",
        "apptainer exec $IMAGE_OPTS --nv --bind /a:/b web.sif ./app",
        "apptainer exec a.sif python -B a.py",
        "apptainer exec a.sif apptainer exec --nv b.sif ./app",
        "docker run --rm --gpus all -v /a:/b -u 1000:1000 a/b:1 ./app --gpus 4 -v",
        "podman run --rm a/b:1 sh -c 'ls -v /a:/b'",
        "shifter --image a/b:1 ./app --image photo.png --module=train",
        "apptainer run web.sif --bind 0.0.0.0:80",
        "X= $(true)",
        "A=$(sbatch --parsable a.sh)\nsbatch -d afterok:$A b.sh",
        "A=$(qsub a.sh)\nqsub -W depend=afterok:$A b.sh",
        "#$ -cwd\n# $PY a.py -n 2",
        "##PBS -N 'a",
        "CUDA_VISIBLE_DEVICES= $(which app)",
        "sed -i -e 's/<version>/1/' -e \"s/<name>/b/\" a",
        "python -c \"print('<container>')\"",
        "cp -t b a.zip",
        "export PATH='/opt/bin:/usr/bin:/bin'",
        "P=$(Rscript -e 'cat(system.file(\"a.R\"))')",
        "#SBATCH -N1 -c4\nparallel -j $N gzip ::: a b",
        "#SBATCH -N1 -c4\nls | parallel -j 4 gzip",
        "#SBATCH -N1 -c4\nparallel -j 4 gzip < list",
        "mpirun 16>log -np 4 ./app",
        "mpirun 2>&1 -np 4 ./app",
        "#SBATCH -N1 -c4\nexec < list\nparallel -j 4 gzip",
        "#SBATCH -N1 -c4\nexec 2>log 0<list\nparallel -j 4 gzip",
        "#SBATCH -N1 -c4\nparallel -j 4 -a list gzip",
        "#SBATCH -N1 -c4\nparallel --arg-file list gzip",
        "#SBATCH -N1 -c4 --input=list\nparallel -j 4 gzip",
        "python a.py --data_dir d --fp16",
        "cd -P -- /data/run",
        "cd /data 2>/dev/null",
        "cd /data > log 2>&1",
        "cd $OPTIONAL /data",
        "cd ${A}_b && ./app",
        "cd $HOME/a || exit 1",
        "cd /data; ./app x",
        "cd /data # and run",
        'cd "my data"',
        "cd /data/my\\ run",
        "zsh <<'EOF'\ncd old new\nEOF",
        "srun ksh -c 'cd old new; ./app'",
        "#SBATCH -N1 -c4 --mem-per-cpu=1G\n./app",
        "#$ -N a10\n./app",
        "export MY_PATH=/a\npython $MY_PATH/a.py",
        "./app\nexit 0\n#!/bin/bash\n#SBATCH -N1",
        "bash -c '. env/bin/activate; python a.py'",
        "conda activate ~/envs/a",
        "module load openmpi\nmpirun -x N=1 ./a",
        "module load impi\necho 'mpirun -x N=1'",
        "#SBATCH -N1 -n8 --gpus-per-node=4 --gpu-bind=single:2\nsrun python a.py",
        '#SBATCH -N1\nrun="python -c 1"\n$run',
        "#SBATCH -pgpu -N1 -c4\n./app",
        "go build ./...",
        "##SBATCH -N1\n# > #SBATCH -n 2",
        "#BSUB -n4 -W1:00\n./app",
        "#BSUB -o out.%J -J x -E 'mkdir $HOME/x'\n./app",
        "#SBATCH -N2\nexec julia $0\nf(x) = (x, 1)",
        "#SBATCH -N1\nN=$((SLURM_TASKS_PER_NODE * 2))\nsrun -n1 ./a $N",
        "#SBATCH -N2\nsrun ./a -n $SLURM_TASKS_PER_NODE",
        "#BSUB -n <%= cores * 2 %>\n#BSUB -W <%= time / 60 %>\n./app",
        "#SBATCH --time=${ job.time }\n#SBATCH -N ${job.nodes}\n./app",
        "#$ -S /bin/csh\nsetenv A b\nsource a.csh\n./app",
    ],
)
def test_what_is_right_is_told_as_a_note_at_most(text: str) -> None:
    found = findings(f"#!/bin/bash\n{text}\n", "unknown")
    assert [one for one in found if one.severity != "note"] == []


@in_one_test(
    "directives, port, severity",
    [
        ("--gpus-per-node=1", "29500", "warning"),
        ("--gpus-per-node=8", "29500", "note"),
        ("--exclusive", "29500", "note"),
        ("--gpus-per-node=1", "45678", "note"),
        ("--gpus-per-node=4", "$((60000 + SLURM_JOB_ID % 10000))", "warning"),
        ("--gpus-per-node=4", "66000", "error"),
    ],
)
def test_a_port_is_as_grave_as_it_is_likely_to_be_taken(directives: str, port: str, severity: str) -> None:
    text = f"#!/bin/bash\n#SBATCH {directives}\nexport MASTER_PORT={port}\nsrun python train.py\n"
    found = [one for one in findings(text, "unknown") if one.rule.startswith("master-port")]
    assert severity == min((one.severity for one in found), key=["error", "warning", "note"].index)


def test_lint_and_the_environment_have_one_table_of_cuda_and_gpus() -> None:
    """The first CUDA that software.known_pairs names is the first that lint takes."""
    profile = load_site("olivia")
    assert profile.node is not None
    first = first_cuda(profile.node.gpu_arch or "")
    assert first is not None
    major, minor = first.split(".")
    for version, rules in ((first, set[str]()), (f"{major}.{int(minor) - 1}", {"cuda-too-old-for-gpu"})):
        found = findings(f"#!/bin/bash\nmodule load CUDA/{version}.0\n", "olivia")
        assert {each.rule for each in found if each.rule.startswith("cuda")} == rules


@pytest.mark.parametrize(
    ("lines", "rule", "severity"),
    [
        # One field may have been forgotten, several are those of a template.
        ("#SBATCH -A <project>\nsrun ./app\n", "placeholder", "warning"),
        ("#SBATCH -A <project>\n#SBATCH -p <partition>\nsrun ./app\n", "placeholder", "note"),
        # The environment may have the variable.
        ('srun ./app "${DATA:-/path/to/data}"\n', "placeholder", "note"),
        ("srun ./app\necho done\n", "status-lost", "warning"),
        # As the author has written it.
        ("srun ./app\nexit 0\n", "status-lost", "note"),
        ("#PBS -o $HOME/out\n#PBS -l nodes=1\nmpiexec ./app\n", "directive-variable", "note"),
        ("#PBS -o $HOME/out\n#PBS -l select=1\nmpiexec ./app\n", "directive-variable", "error"),
    ],
)
def test_a_severity_depends_on_the_lines_around(lines: str, rule: str, severity: str) -> None:
    start = "" if lines.startswith("#PBS") else "#SBATCH --time=10\n"
    found = findings(f"#!/bin/bash\n{start}{lines}", "unknown")
    assert {one.severity for one in found if one.rule == rule} == {severity}


def test_an_address_of_each_node_is_shown_with_its_option() -> None:
    case = read_case(DATA / "rendezvous-own-host.between-quotes.sh")
    found = [one.message for one in findings(case.text, case.site) if one.rule == "rendezvous-own-host"]
    assert found == ["--rdzv_endpoint=$(hostname...: each of 2 nodes takes its own"]


def test_the_batch_shell_computes_what_an_unquoted_text_has() -> None:
    """All ranks get one host and one port: $(hostname) and RANDOM are read before srun starts."""
    text = """#!/bin/bash
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gpus-per-node=4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
export MASTER_ADDR=$(hostname)
srun bash -c "MASTER_PORT=$((20000 + RANDOM % 100)) python train.py"
srun bash <<RANK
export MASTER_ADDR=$(hostname) MASTER_PORT=$((20000 + RANDOM % 100))
python train.py
RANK
srun --ntasks=2 --ntasks-per-node=1 tee env.sh <<'LATER'
MASTER_ADDR=$(hostname)
LATER
"""
    assert "rendezvous-own-host" not in {one.rule for one in findings(text, "unknown")}
    quoted = text.replace("<<RANK", "<<'RANK'")
    assert "rendezvous-own-host" in {one.rule for one in findings(quoted, "unknown")}
