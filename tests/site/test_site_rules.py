"""Each kind of mistake, found with its file, line and remedy."""
# ruff: noqa: E501 - one mistake per line reads better

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpclaunch.errors import BadInputError
from hpclaunch.scheduler.registry import LAUNCHERS
from hpclaunch.site.load_profile import load_site
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.validate import checked
from hpclaunch.site.yaml_tree import parse_tree
from tests.site.conftest import VALID, Write

# (what is replaced, by what, line of the problem, what the message says)
TYPES = [
    ("  reserved_cores: 0,4", "  reserved_core: 0,4", 23, "unknown key 'reserved_core' in node; did you mean 'reserved_cores'?"),
    ("cores: 8\n", "cores: eight\n", 17, "node.cores is 'eight'; it must be a whole number from 1 to 65536"),
    ("cores: 8\n", "cores: 0\n", 17, "node.cores is 0; it must be"),
    ("cores: 8\n", "cores: true\n", 17, "node.cores is true; it must be"),
    ("cores: 8\n", "cores: [8]\n", 17, "node.cores is a list; it must be"),
    ("  cores: 8\n", "", 15, "node lacks 'cores'; add cores: with a whole number"),
    ('value: "1"', "value: 1", 30, 'env.A.value is 1; it must be text: put it in quotes, "1"'),
    ('value: "1"', "value: true", 30, 'it must be text: put it in quotes, "true"'),
    ("reason: because, ", "", 30, "env.A lacks 'reason'"),
    ("launcher: srun", "launcher: srunn", 8, f"one of {', '.join(LAUNCHERS)}; did you mean srun?"),
    ("checked: 2026-11-20", "checked: 20.11.2026", 7, "sources.page.checked is '20.11.2026'; it must be a date such as"),
    ("url: https://example.org/page", "url: example.org", 6, "it must be an address such as https://..."),
    ("cores: 4-5, ", "cores: 4..5, ", 26, "node.gpus[0].cores is '4..5'; it must be a CPU list"),
    ("  reserved_cores: 0,4", "  reserved_cores: 4", 23, "node.reserved_cores is 4; it must be text: put it in quotes"),
    ("  l3_groups: [0-1, 2-3, 4-5, 6-7]", "  l3_groups: 0-1", 22, "it must be a list"),
    ("binding: {cpu: mask_cpu}", "binding: mask_cpu", 28, "it must be a mapping; its keys may be source, cpu, confined, gpu_visible_var"),
    ("queues:\n  main:\n", "queues:\n  - main:\n", 10, "queues is a list; it must be a mapping"),
    ("schema: 1", "schema: 2", 1, "schema is 2; it must be 1"),
    ("required: true", "required: yes", 9, "account.required is 'yes'; it must be true or false"),
    ("description: a machine for tests\n", "", 1, "the profile lacks 'description'"),
]  # fmt: skip

RULES = [
    ("source: page}", "source: paeg}", 30, "source 'paeg' is not in sources; did you mean 'page'?"),
    ("max_walltime: 01:00:00", "max_walltime: 1:00", 13, "max_walltime: bad walltime '1:00'; write it as HH:MM:SS"),
    ("max_walltime: 01:00:00", "max_walltime: 01:00:00\n    min_walltime: 2h", 13, "at least 7200 seconds and at most 3600"),
    ("max_nodes: 4", "max_nodes: 4\n    min_nodes: 5", 12, "at least 5 nodes and at most 4"),
    ("schema: 1\n", "schema: 1\nstatus: historic\n", 2, "status is historic and retired is missing"),
    ("schema: 1\n", "schema: 1\nretired: {since: 2024-11-15}\n", 1, "status is production and retired is set"),
    ("pattern: 'p\\d+'", "pattern: 'p('", 9, "not a regular expression"),
    ("example: p1", "example: q1", 9, "example 'q1' does not match the pattern"),
    ("cores: 4-7", "cores: 3-7", 21, "cores 3 are in numa twice"),
    ("cores: 4-7", "cores: 5-7", 19, "cores 4 are on no NUMA node"),
    ("cores: 4-7", "cores: 4-8", 21, "cores 8 are not in the node; its cores are 0-7"),
    ("{id: 1, cores: 4-7}", "{id: 0, cores: 4-7}", 19, "NUMA node 0 appears 2 times"),
    ("cores: 4-7", "cores: 7-4", 15, "falling range"),
    ("[0-1, 2-3, 4-5, 6-7]", "[0-1, 1-3]", 22, "cores 1 are in l3_groups twice"),
    ("[0-1, 2-3, 4-5, 6-7]", "[0-1, 2-9]", 22, "cores 8-9 are not in the node"),
    ("[0-1, 2-3, 4-5, 6-7]", "['']", 22, "an L3 group without cores"),
    ("reserved_cores: 0,4", "reserved_cores: 0,8", 23, "reserved cores 8 are not in the node"),
    ("{numa: 1, cores: 4-5", "{numa: 2, cores: 4-5", 26, "GPU 0 is on NUMA node 2; there are [0, 1]"),
    ("{numa: 1, cores: 4-5", "{cores: 4-5", 26, "GPU 0 is near cores 4-5 and its NUMA node is not named; add numa:"),
    ("    - {id: 0, cores: 0-3}\n    - {id: 1, cores: 4-7}\n", "    []\n", 27, "cpu is mask_cpu and node.numa is empty"),
    ("cores: 4-5", "cores: 3-4", 26, "GPU 0 is near cores 3-4; NUMA node 1 has cores 4-7"),
    ("nic: hsn0", "nic: hsn1", 26, "GPU 0 is near NIC 'hsn1'; nics: names hsn0"),
    ("[{name: hsn0, numa: 1}]", "[{name: hsn0, numa: 7}]", 27, "NIC hsn0 is on NUMA node 7"),
    ("threads_per_core: 2", "threads_per_core: 2\n  sockets: 3", 19, "8 cores in 3 sockets"),
    ("launcher: srun", "launcher: pals", 8, "launcher pals does not start ranks under slurm; it must be srun or ibrun or mpiexec"),
    ("launcher: srun", "launcher: srun, select: system=x", 8, "only PBS has it"),
    ("cpu: mask_cpu", "cpu: list", 28, "cpu is list, an option of pals, and the launcher is srun; it must be mask_cpu or"),
    ("max_nodes: 4", "kind: queue", 12, "kind is queue and the scheduler is slurm; it must be partition or qos"),
    ("max_nodes: 4", "kind: qos\n    with_partition: other", 13, "'other' is not a partition of this profile"),
    ("max_nodes: 4", "with_partition: main", 12, "with_partition on a partition"),
    ("  A: {", "  A-B: {", 30, "'A-B' is not a name of an environment variable"),
    ('value: "1"', 'value: "1\\n2"', 30, "value holds a line break"),
    ("reason: because", 'reason: "a\\nb"', 30, "reason holds a line break"),
    ("cpu: mask_cpu", "cpu: mask_cpu, gpu_visible_var: 1X", 28, "not a name of an environment variable"),
    ("env:\n", "mpi: {plugin: pmix, plugin_open: true}\nenv:\n", 29, "plugin_open is true and plugin is 'pmix'"),
    ("env:\n", "mpi: {plugin: 'pm ix'}\nenv:\n", 29, "not a name of a plugin"),
    ("env:\n", "detect: {hostnames: ['(']}\nenv:\n", 29, "not a regular expression"),
    ("env:\n", "detect: {env: {1: x}}\nenv:\n", 29, "a key must be text"),
    ("max_nodes: 4", "routes: [{name: a, min_nodes: 3, max_nodes: 2, max_walltime: 1h}]", 12, "at least 3 nodes and at most 2"),
    ("max_nodes: 4", "routes: [{name: a, max_nodes: 2, max_walltime: x}]", 12, "bad walltime 'x'"),
    ("env:\n", "links: {nic: {gb_s: 25, per_node: 4}}\nenv:\n", 29, "a node has 4 NICs, and node.nics names 1"),
    ("env:\n", "links: {nic: {gb_s: 0}}\nenv:\n", 29, "a number above 0"),
    ("cores: 8\n", "cores: 65536\n", 17, "65536 cores x 2 threads"),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new", "line", "message"), [*TYPES, *RULES])
def test_mistakes_are_found_at_their_lines(write: Write, old: str, new: str, line: int, message: str) -> None:
    write("here", (old, new))
    with pytest.raises(BadInputError) as caught:
        load_site("here")
    found = str(caught.value)
    assert message in found
    assert any(text.startswith(f"config/hpclaunch/sites/here.yaml:{line}: ") for text in found.splitlines())


def test_all_mistakes_are_reported_at_once(write: Write) -> None:
    write(
        "here", ("cores: 8\n", "cores: x\n"), ("max_nodes: 4", "max_node: 4"), ("cpu: mask_cpu", "cpu: mask")
    )
    with pytest.raises(BadInputError) as caught:
        load_site("here")
    lines = str(caught.value).splitlines()
    assert [int(text.split(":")[1]) for text in lines] == [12, 17, 28]


@settings(deadline=None)
@given(st.data())
def test_a_profile_with_any_line_missing_or_doubled_loads_or_is_refused_with_its_line(
    data: st.DataObject,
) -> None:
    lines = VALID.splitlines(keepends=True)
    number = data.draw(st.integers(0, len(lines) - 1))
    lines[number] = data.draw(st.sampled_from(["", lines[number] * 2, lines[number].replace(":", ": [", 1)]))
    try:
        checked(parse_tree("".join(lines), "f.yaml"), SiteProfile)
    except BadInputError as error:
        found = str(error)
    else:
        found = ""
    assert all(text.startswith(("f.yaml:", "  ")) for text in found.splitlines())
