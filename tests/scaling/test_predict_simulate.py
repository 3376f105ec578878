"""``predict --simulate``: times worked out by hand on three networks, 512 ranks, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hpclaunch.cli.main import program
from hpclaunch.errors import BadInputError
from hpclaunch.scaling.allreduce_messages import shifted_peers
from hpclaunch.scaling.simulated_exchange import NetworkOptions, network_shape
from hpclaunch.site.load_profile import load_site

MODEL = """\
schema: 1
name: one
input: [1000]
samples: 1000000
layers:
  - {name: flat, kind: flatten}
  - {name: fc, kind: linear, outputs: 6400, bias: false}
"""
BYTES = 4 * 6400 * 1000
ALPHA, BETA = 3e-6, 1e-10
"""Of ``--network-latency-us 3 --network-gb-s 10``."""
LUMI_NODES = int(os.environ.get("HPCLAUNCH_TEST_NETWORK_NODES", "64"))


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def model(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A model of known size; the replay is compiled once for all tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    file = tmp_path / "one.yaml"
    file.write_text(MODEL)
    return str(file)


def predict(model: str, *options: object) -> Result:
    speeds = ("--tflops", 10, "--memory-gb-s", 1000, "--network-latency-us", 3, "--network-gb-s", 10)
    words = ("--model", model, "--batch-per-worker", 1, "--strategy", "data", "--simulate", *speeds, *options)
    return CliRunner().invoke(program, ["predict", *map(str, words)])


def simulated(model: str, *options: object) -> dict[str, dict[str, Any]]:
    """By allreduce, of the last number of GPUs."""
    answer = predict(model, *options, "--json")
    assert answer.exit_code == 0, answer.output
    found: list[dict[str, Any]] = json.loads(answer.stdout)["simulation"]["exchanges"]
    return {one["allreduce"]: one for one in found}


def halving_doubling(ranks: int, far: int, slower: float) -> float:
    """Seconds where exchanges at distances from ``far`` on share links with ``slower`` times the bytes."""
    seconds, distance = 0.0, ranks // 2
    while distance:
        seconds += 2 * (ALPHA + BYTES * distance / ranks * BETA * (slower if distance >= far else 1))
        distance //= 2
    return seconds


@pytest.mark.simgrid
def test_three_networks_take_what_their_links_allow(model: str) -> None:
    """64 nodes: 16 per leaf with 4 links up; 2 of 9 groups of 32, 4 links to each other; a torus of 4."""
    nodes = ("--site", "local", "--gpus", 64, "--gpus-per-node", 1)
    ring = 2 * 63 * (ALPHA + BYTES / 64 * BETA)

    whole = simulated(model, *nodes, "--network", "fat-tree", "--nodes-per-group", 16)
    for name in ("ring", "hierarchical"):
        assert whole[name]["closed_form_s"] == pytest.approx(ring)
        assert whole[name]["simulated_s"] == pytest.approx(ring, rel=0.02)
        assert (whole[name]["messages"], whole[name]["network_bytes"]) == (64 * 126, 126 * BYTES)
    exchange = whole["halving-doubling"]
    assert exchange["closed_form_s"] == pytest.approx(halving_doubling(64, 64, 1))
    assert exchange["simulated_s"] == pytest.approx(halving_doubling(64, 64, 1), rel=0.02)

    tapered = simulated(model, *nodes, "--network", "fat-tree", "--nodes-per-group", 16, "--taper", 4)
    assert tapered["ring"]["simulated_s"] == pytest.approx(ring, rel=0.02)
    expected = halving_doubling(64, 16, 4)
    assert tapered["halving-doubling"]["simulated_s"] == pytest.approx(expected, rel=0.02)

    groups = ("--network", "dragonfly", "--nodes-per-group", 32, "--groups", 9)
    dragonfly = simulated(model, *nodes, *groups)
    expected = halving_doubling(64, 32, 8)
    assert dragonfly["halving-doubling"]["simulated_s"] == pytest.approx(expected, rel=0.02)

    torus = simulated(model, *nodes, "--network", "torus")
    assert torus["ring"]["simulated_s"] == pytest.approx(ring, rel=0.03)
    # A shift by half of a side of 4: two of the nodes of a row send over the same link.
    expected = sum(
        2 * (ALPHA + BYTES / 64 * distance * BETA * (2 if distance in (2, 8, 32) else 1))
        for distance in (32, 16, 8, 4, 2, 1)
    )
    assert torus["halving-doubling"]["simulated_s"] == pytest.approx(expected, rel=0.03)


def loop_seconds(nbytes: float, sharers: list[int]) -> float:
    """Seconds of swaps of a half, a quarter, ... whose links are shared by that many times their bytes."""
    return sum(2 * (ALPHA + nbytes / (2 << turn) * BETA * times) for turn, times in enumerate(sharers))


@pytest.mark.simgrid
@pytest.mark.parametrize("ranks", [128, 512])
def test_shifted_halving_doubling_on_the_loop_network(model: str, ranks: int) -> None:
    """16 hosts per switch, two links per shortcut: 8 hosts share a link, with four distances at a time 2.

    Between 32 switches five halvings: four are shifted, in the last all hosts of a switch use one distance.
    Between 8 switches two are shifted (2^4 is more than 8), so 4 hosts share a link. Seed: about 25 %.
    """
    found = simulated(model, "--site", "local", "--gpus", ranks, "--gpus-per-node", 1, "--network", "loop")
    inside = [1] * 4
    near, shifted = {128: ([8] * 3, [4, 4, 8]), 512: ([8] * 5, [2, 2, 2, 2, 8])}[ranks]
    near_s, shifted_s = (loop_seconds(BYTES, inside + between) for between in (near, shifted))
    assert found["near-first"]["simulated_s"] == pytest.approx(near_s, rel=0.02)
    assert found["shifted"]["simulated_s"] == pytest.approx(shifted_s, rel=0.02)
    for name in ("near-first", "shifted"):
        assert found[name]["closed_form_s"] == pytest.approx(loop_seconds(BYTES, [1] * (4 + len(near))))
    if ranks == 512:
        assert 0.2 < 1 - found["shifted"]["simulated_s"] / found["near-first"]["simulated_s"] < 0.27


def test_the_peers_of_shifted_halving_doubling() -> None:
    """Each partner has the rank as its own, all halvings together reach every rank, and lengths differ."""
    for ranks, at_switch in ((512, 16), (1024, 8), (64, 4), (16, 16), (8, 1)):
        halvings = ranks.bit_length() - 1
        peers = [shifted_peers(rank, ranks, at_switch) for rank in range(ranks)]
        for turn in range(halvings):
            assert all(peers[peers[rank][turn]][turn] == rank for rank in range(ranks))
        assert {sum(rank ^ peer for peer in peers[rank]) for rank in range(ranks)} == {ranks - 1}
    at_one_switch = [shifted_peers(rank, 512, 16) for rank in range(16)]
    assert {len({rank ^ own[4] for rank, own in enumerate(at_one_switch)})} == {4}


@pytest.mark.simgrid
@pytest.mark.timeout(3600)
def test_the_ranks_of_all_nodes_of_lumi_g_or_512(model: str) -> None:
    """Of the site's own network and nodes; a ring of all ranks up to 512 of them."""
    gpus = 8 * LUMI_NODES
    most = ("--most-messages", max(1_000_000, 2 * LUMI_NODES**2))
    found = simulated(model, "--site", "lumi-g", "--gpus", gpus, *most)
    assert {one["network"] for one in found.values()} == {"dragonfly"}
    leaders = found["hierarchical"]
    assert leaders["messages"] == 2 * LUMI_NODES * (LUMI_NODES - 1)
    assert leaders["network_bytes"] == pytest.approx(2 * (LUMI_NODES - 1) * BYTES, rel=1e-3)
    assert 0.999 < leaders["simulated_s"] / leaders["closed_form_s"] < 1.1
    exchange = found["halving-doubling"]
    assert exchange["simulated_s"] > 0.999 * exchange["closed_form_s"]
    ring = found["ring"]
    if LUMI_NODES == 64:
        assert exchange["simulated_s"] < 1.02 * exchange["closed_form_s"]
        assert ring["simulated_s"] == pytest.approx(ring["closed_form_s"], rel=0.02)
        assert ring["messages"] == 2 * 511 * 64
    else:
        assert exchange["simulated_s"] > 2 * exchange["closed_form_s"]
        assert "more than" in ring["remark"]


@pytest.mark.simgrid
def test_the_table_names_the_network_and_what_was_left_out(model: str) -> None:
    options = ("--site", "lumi-g", "--gpus", "8,16,20,64", "--most-messages", 500)
    answer = predict(model, *options)
    assert answer.exit_code == 0, answer.output
    assert "ring on 64 GPUs: not simulated: more than 500 messages (--most-messages)" in answer.stdout
    assert "ring on 20 GPUs: not simulated: not a multiple of the 8 GPUs of a node" in answer.stdout
    assert (
        "dragonfly: profile, source network; 128 nodes per group: profile; taper 1: assumed" in answer.stdout
    )
    assert "24 groups: 2,978 nodes by 128" in answer.stdout
    table = answer.stdout.partition("replayed in SimGrid")[2].splitlines()
    assert [line.split()[:3] for line in table if line.startswith("16 ")] == [
        ["16", "2", name] for name in ("ring", "halving-doubling", "hierarchical", "pipelined")
    ]
    assert "a bound, no verdict" in answer.stdout
    assert "differ by more than" not in answer.stdout


@pytest.mark.simgrid
def test_without_simgrid_one_line_says_what_to_install(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
    options = ("--site", "lumi-g", "--gpus", 16)
    folder = tmp_path / "programs"
    folder.mkdir()
    compiler = folder / "g++"
    compiler.write_text('#!/bin/sh\nPATH=/usr/bin:/bin exec g++ -nostdinc "$@"\n')
    compiler.chmod(0o755)
    for path, what in ((folder, "SimGrid is not installed"), (tmp_path, "g++ is not installed")):
        monkeypatch.setenv("PATH", str(path))
        answer = predict(model, *options)
        assert answer.exit_code == 4
        assert f"--simulate: {what}" in answer.output
        assert "libsimgrid-dev" in answer.output


def test_what_cannot_be_simulated_is_refused(model: str) -> None:
    for options, message in (
        (("--site", "local", "--gpus", 4), "the GPUs of a node are not known"),
        (("--site", "lumi-g", "--gpus", "4,8"), "8 GPUs are in one node of 8"),
        (
            ("--site", "local", "--gpus", 4, "--gpus-per-node", 1),
            "does not state how its nodes are connected",
        ),
    ):
        answer = predict(model, *options)
        assert (answer.exit_code, message in answer.output) == (3, True), answer.output
    words = ["predict", "--site", "lumi-g", "--model", model, "--batch-per-worker", "1", "--gpus", "64"]
    answer = CliRunner().invoke(program, [*words, "--taper", "2"])
    assert (answer.exit_code, "--taper is for --simulate" in answer.output) == (2, True)


def test_networks_from_profiles() -> None:
    shape = network_shape(load_site("abci"), NetworkOptions(), 100, 12.5)
    assert (shape.kind, shape.layout) == ("fat-tree", (6, 17, 6))
    assert "taper 3: profile" in shape.origins
    shape = network_shape(load_site("lumi-g"), NetworkOptions(taper=2), 300, 100)
    assert shape.layout[:3] == (3, 32, 4)
    assert shape.layout[3] == pytest.approx(128 * 100 / 2 / 23)
    # What the profile states of its dragonfly does not make a fat tree.
    shape = network_shape(load_site("lumi-g"), NetworkOptions(network="fat-tree"), 300, 100)
    assert shape.layout == (10, 32, 32)
    for nodes, sides in ((2, (2, 1, 1)), (64, (4, 4, 4)), (512, (8, 8, 8)), (2978, (15, 15, 14))):
        shape = network_shape(load_site("local"), NetworkOptions(network="torus"), nodes, 10)
        assert (shape.layout, shape.nodes) == (sides, sides[0] * sides[1] * sides[2])
    shape = network_shape(load_site("lumi-g"), NetworkOptions(network="loop"), 500, 10)
    assert (shape.layout, shape.nodes) == ((32, 16, 2), 512)
    with pytest.raises(BadInputError, match="2, 4, 8"):
        network_shape(load_site("local"), NetworkOptions(network="loop", nodes_per_group=6), 64, 10)
    for network, options in (("torus", {"nodes_per_group": 4}), ("fat-tree", {"groups": 3})):
        with pytest.raises(BadInputError, match=rf"has no effect on a {network}"):
            network_shape(load_site("abci"), NetworkOptions(network=network, **options), 64, 10)  # type: ignore[arg-type]
    with pytest.raises(BadInputError, match="300 nodes are 75 groups of 4"):
        network_shape(load_site("lumi-g"), NetworkOptions(nodes_per_group=4), 300, 10)
