"""``hpclaunch predict``: keys, parameters with origins, calibration, memory, ranking, and what is refused."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from hpclaunch.cli.main import program
from hpclaunch.scaling.calibration import calibrate
from hpclaunch.scaling.learned_range import StepRange
from hpclaunch.scaling.prediction import rank

SITE = """\
schema: 1
name: four
extends: generic-slurm
description: Four V100 per node
billing: {unit: points, per_node_hour: 2}
node:
  cpu_model: x
  cores: 40
  gpus: [{}, {}, {}, {}]
  gpu_vendor: nvidia
  gpu_model: NVIDIA Tesla V100 16 GB
  gpu_memory_gib: 16
fabric: {kind: infiniband}
"""


@pytest.fixture
def site(tmp_path: Path) -> str:
    file = tmp_path / "four.yaml"
    file.write_text(SITE)
    return str(file)


def predict(*options: object) -> Result:
    return CliRunner().invoke(program, ["predict", *map(str, options)])


def document(*options: object) -> dict[str, Any]:
    answer = predict(*options, "--json")
    assert answer.exit_code == 0, answer.output
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def vgg(site: str, *options: object) -> dict[str, Any]:
    return document("--site", site, "--model", "vgg16", "--batch-per-worker", 32, *options)


def test_the_keys_of_the_document(site: str) -> None:
    found = vgg(site, "--gpus", "8")
    assert {"points", "ranking", "parameters"} <= set(found)
    keys = {"strategy", "gpus", "step_s", "compute_s", "communication_s", "memory_gib", "fits", "most_gpus"}
    assert all(
        keys <= set(point) and set(point["step_s"]) == {"value", "low", "high"} for point in found["points"]
    )
    assert {"name", "value", "origin"} <= set(found["parameters"][0])
    names = [point["strategy"] for point in found["points"]]
    assert names == ["data", "spatial", "pipeline", "filter", "channel", "data+filter", "data+spatial"]
    assert sorted(found["ranking"]["8"]) == sorted(names)
    assert [one["strategy"] for one in found["impossible"]] == ["serial"]


def test_the_step_is_the_formula_of_its_parameters(site: str) -> None:
    """Data: computation, and 2 (p - 1) (alpha + 4 |w| / p / bandwidth), all from the printed parameters."""
    options = ("--network-gb-s", 10, "--network-latency-us", 30, "--node-gb-s", 40, "--node-latency-us", 5)
    four, eight = vgg(site, "--gpus", "4,8", "--strategy", "data", *options)["points"]
    size = 4 * 138_357_544
    assert eight["communication_s"] == pytest.approx(14 * (30e-6 + size / 8 / 10e9))
    assert four["communication_s"] == pytest.approx(6 * (5e-6 + size / 4 / 40e9))
    assert four["compute_s"] == pytest.approx(eight["compute_s"])
    assert eight["step_s"]["value"] == pytest.approx(eight["compute_s"] + eight["communication_s"])
    half = vgg(site, "--gpus", "8", "--strategy", "data", "--overlap", 0.5, *options)["points"][0]
    assert half["communication_s"] == pytest.approx(eight["communication_s"] / 2)


def test_an_epoch_and_its_cost(site: str) -> None:
    point = vgg(site, "--gpus", "8", "--strategy", "data", "--samples", 2560)["points"][0]
    assert point["batch"] == 256
    assert point["epoch_s"] == pytest.approx(10 * point["step_s"]["value"])
    assert point["cost_per_epoch"] == pytest.approx(2 * 2 * point["epoch_s"] / 3600)
    assert point["most_gpus"] == 2560 // 32


def test_the_hybrids_have_workers_of_a_node(site: str) -> None:
    data, spatial = vgg(site, "--gpus", "8", "--strategy", "data", "--strategy", "data+spatial")["points"]
    assert (data["batch"], spatial["batch"]) == (256, 64)
    two = vgg(site, "--gpus", "8", "--strategy", "data+spatial", "--gpus-per-worker", "2")["points"][0]
    assert two["batch"] == 128
    found = vgg(site, "--gpus", "6", "--strategy", "data+spatial")
    assert found["impossible"][0]["why"] == "6 GPUs are not workers of 4"


def test_memory_zero_and_recomputation(site: str) -> None:
    def memory(*options: object) -> dict[str, float]:
        point = vgg(site, "--gpus", "8", "--strategy", "data", *options)["points"][0]
        parts: dict[str, float] = point["memory"]
        assert point["memory_gib"] == pytest.approx(sum(parts.values()))
        return parts

    weights = 4 * 138_357_544 / 2**30
    plain = memory()
    assert [plain[key] for key in ("parameters", "gradients", "optimiser")] == [pytest.approx(weights)] * 3
    assert memory("--optimizer", "adam")["optimiser"] == pytest.approx(2 * weights)
    for stage, divided in enumerate(("optimiser", "gradients", "parameters"), 1):
        assert memory("--zero", stage)[divided] == pytest.approx(weights / 8)
    assert memory("--recompute")["saved"] < 0.7 * plain["saved"]
    assert memory("--precision", "fp32")["saved"] == pytest.approx(plain["saved"])


def test_what_does_not_fit_says_what_would(site: str) -> None:
    big = ("--site", site, "--model", "vgg16", "--batch-per-worker", 256, "--gpus", 8, "--strategy", "data")
    point = document(*big)["points"][0]
    assert point["fits"] is False
    assert "--batch-per-worker 128" in point["remedies"]
    assert document(*big)["ranking"] == {"8": []}
    assert "data on 8 GPUs does not fit; it would with: " in predict(*big).stdout


def test_recomputation_costs_a_forward_pass(site: str) -> None:
    plain = vgg(site, "--gpus", "1", "--strategy", "serial")["points"][0]
    again = vgg(site, "--gpus", "1", "--strategy", "serial", "--recompute")["points"][0]
    assert again["compute_s"] / plain["compute_s"] == pytest.approx(4 / 3, rel=0.02)


def test_dots_repeat_the_factor(site: str) -> None:
    found = vgg(site, "--gpus", "8,16,...,100", "--strategy", "data")
    assert [point["gpus"] for point in found["points"]] == [8, 16, 32, 64, 100]


def test_every_parameter_has_an_origin(site: str) -> None:
    found = vgg(site, "--gpus", "8", "--network-gb-s", 7)["parameters"]
    origins = {parameter["name"]: parameter["origin"] for parameter in found}
    assert origins["network_gb_s"] == "option --network-gb-s"
    assert origins["gpu_tflops"].startswith("data sheet: ")
    assert all(origins.values())
    olivia = document("--site", "olivia", "--model", "mlp", "--batch-per-worker", 8, "--gpus", 8)[
        "parameters"
    ]
    (network,) = [parameter for parameter in olivia if parameter["name"] == "network_gb_s"]
    assert network["origin"].startswith("profile: bus bandwidth measured on 2 nodes")


def test_links_of_the_profile_are_taken(site: str) -> None:
    file = Path(site).with_name("linked.yaml")
    links = "links: {nic: {gb_s: 6, kind: EDR}, gpu_gpu: {gb_s: 33}}"
    network = "network: {layout: fat-tree, nodes_per_group: 2}"
    fabric = f"fabric: {{kind: infiniband, {network}}}"
    file.write_text(
        SITE.replace("fabric: {kind: infiniband}", f"{links}\n{fabric}").replace("four", "linked")
    )
    found = vgg(str(file), "--gpus", "8", "--strategy", "data")["parameters"]
    values = {one["name"]: (one["value"], one["origin"]) for one in found}
    assert values["network_gb_s"] == (6, "profile: EDR, one NIC")
    assert values["node_gb_s"] == (33, "profile: a link, between two GPUs")
    times = file.with_name("times.csv")
    times.write_text("gpus,seconds\n4,10\n8,5\n16,5\n")
    answer = CliRunner().invoke(
        program, ["scale", "import", str(times), "--kind", "strong", "--site", str(file)]
    )
    assert "between 8 and 16 GPUs the job crosses the group of 2 nodes" in answer.stdout


# --- calibration --------------------------------------------------------------------------------------------


def calibrated(site: str, folder: Path, times: dict[int, float], *options: object) -> dict[str, Any]:
    file = folder / "measured.csv"
    rows = "".join(f"{gpus},{seconds}\n" for gpus, seconds in times.items())
    file.write_text(f"gpus,seconds_per_step\n{rows}")
    return vgg(site, "--calibrate", file, *options)


def test_a_calibration_returns_the_bandwidth_that_made_the_times(site: str, tmp_path: Path) -> None:
    """Times of a network of 5 GB/s: it is found, and what was not measured keeps its origin."""
    sizes = ("--gpus", "8,16,64,512", "--strategy", "data")
    true = {
        point["gpus"]: point["step_s"]["value"] for point in vgg(site, *sizes, "--network-gb-s", 5)["points"]
    }
    found = calibrated(site, tmp_path, {8: true[8], 16: true[16]}, "--gpus", "64,512")
    parameters = {parameter["name"]: parameter for parameter in found["parameters"]}
    assert parameters["network_gb_s"]["value"] == pytest.approx(5, rel=0.02)
    assert parameters["network_gb_s"]["origin"].startswith("calibrated: data on 8, 16 GPUs")
    assert parameters["gpu_share"]["origin"].startswith("measured")
    assert parameters["node_gb_s"]["origin"].startswith("assumed")
    for point in found["points"]:
        assert point["mixture"]["model"] == pytest.approx(true[point["gpus"]], rel=0.03)
        assert point["step_s"]["low"] < true[point["gpus"]] < point["step_s"]["high"]


def test_noise_between_two_sizes_is_not_read_as_latency(tmp_path: Path) -> None:
    """A jump of 25 % is not a latency of 117 times the usual one with no computation at all."""
    file = tmp_path / "small.csv"
    file.write_text("gpus,seconds_per_step\n8,0.47\n16,0.587\n")
    options = ("--batch-per-worker", 32, "--strategy", "data+spatial", "--gpus", 512, "--calibrate", file)
    point = document("--site", "abci", "--model", "vgg16", *options)["points"][0]
    assert point["compute_s"] > 0
    assert point["step_s"]["value"] < 1.1 * 0.587
    assert point["step_s"]["high"] > 0.587


def test_repeats_that_differ_are_named_and_widen_the_range(site: str, tmp_path: Path) -> None:
    """0.2 and 5 s, a factor of 25, deviate by 2.3 from their middle in logarithms."""
    widths = []
    for times in ((0.45, 0.45), (0.43, 0.47), (0.2, 5)):
        file = tmp_path / "repeats.csv"
        rows = "".join(f"8,{one}\n" for one in times)
        file.write_text(f"gpus,seconds_per_step\n{rows}16,0.46\n")
        found = vgg(site, "--gpus", "32", "--strategy", "data", "--calibrate", file)
        step = found["points"][0]["step_s"]
        widths.append(step["high"] / step["low"])
    assert widths[0] < widths[1] < 10 < widths[2]
    assert any("repeats of 8 GPUs differ by a factor of 25" in one for one in found["calibration"]["remarks"])


def test_beside_the_model_stand_a_naive_fit_and_carrying_on(site: str, tmp_path: Path) -> None:
    """From 0.44 on 8 to 0.46 on 16: 0.48 on 32 by a + b log2 p; the text says which was better where."""
    found = calibrated(site, tmp_path, {8: 0.44, 16: 0.46}, "--gpus", "32,256", "--strategy", "data")
    near, far = found["points"]
    assert near["mixture"]["naive"] == pytest.approx(0.48)
    assert (near["mixture"]["carry_on"], near["mixture"]["place"]) == (0.46, "beyond one node")
    three = [near["mixture"][name] for name in ("model", "naive", "carry_on")]
    assert min(three) <= near["step_s"]["value"] <= max(three)
    widths = [point["step_s"]["high"] / point["step_s"]["low"] for point in (near, far)]
    assert widths[0] < widths[1]
    assert far["remarks"] == ["256 GPUs are 16 times the largest measured size, 16"]
    file = tmp_path / "measured.csv"
    options = ("--batch-per-worker", 32, "--strategy", "data", "--gpus", "32", "--calibrate", file)
    text = " ".join(predict("--site", site, "--model", "vgg16", *options).stdout.split())
    assert "model naive fit carry on" in text
    assert "beyond one node: the model is best on" in text
    inside = calibrated(site, tmp_path, {1: 0.26, 2: 0.27}, "--gpus", "4", "--strategy", "data")["points"][0]
    assert inside["mixture"]["place"] == "in one node"
    text = predict("--site", site, "--model", "vgg16", *options[:4], "--gpus", 4, "--calibrate", file).stdout
    assert "in one node: the model is not better on" in text


def test_a_link_measured_alone_leaves_the_rest_to_overlap(site: str, tmp_path: Path) -> None:
    """A test alone found 10 GB/s; the training shows a fifth of the exchange that this would take."""
    bench = tmp_path / "bench.json"
    seconds = {size: 14 * (20e-6 + size / 8 / 10e9) for size in (1024, 1 << 20, 1 << 26, 1 << 30)}
    rows = [{"algorithm": "ring", "bytes": size, "median_us": 1e6 * s} for size, s in seconds.items()]
    bench.write_text(json.dumps({"ranks": 8, "rows": rows, "fresh": True}))
    size = 4 * 138_357_544
    times = {p: 0.2614 + 0.2 * 2 * (p - 1) / p * size / 10e9 for p in (8, 16)}
    test = ("--network-test", bench, "--gpus", "32", "--strategy", "data")
    found = calibrated(site, tmp_path, times, *test)
    values = {one["name"]: (one["value"], one["origin"]) for one in found["parameters"]}
    assert values["overlap"][0] == pytest.approx(0.8, abs=0.1)
    assert values["overlap"][1].startswith("calibrated")
    assert values["network_gb_s"][0] == pytest.approx(10, rel=0.05)
    stated = calibrated(site, tmp_path, times, *test, "--overlap", 0.5)
    (kept,) = [one for one in stated["parameters"] if one["name"] == "overlap"]
    assert (kept["value"], kept["origin"]) == (0.5, "option --overlap")


def test_of_repeats_the_median_calibrates(site: str, tmp_path: Path) -> None:
    """One job in four that took ten times as long changes nothing."""
    found = []
    for number, more in enumerate(("", "8,0.411\n8,0.409\n8,4.1\n")):
        file = tmp_path / f"{number}.csv"
        file.write_text(f"gpus,seconds_per_step\n8,0.41\n{more}")
        found.append(vgg(site, "--gpus", "16", "--strategy", "data", "--calibrate", file)["points"][0])
    assert found[1]["step_s"]["value"] == pytest.approx(found[0]["step_s"]["value"], rel=0.01)


def test_a_calibrated_range_is_narrower(site: str, tmp_path: Path) -> None:
    before = vgg(site, "--gpus", "64", "--strategy", "data")["points"][0]["step_s"]
    after = calibrated(site, tmp_path, {8: 0.45, 16: 0.455}, "--gpus", "64")["points"][0]["step_s"]
    assert after["high"] / after["low"] < 1.35 < before["high"] / before["low"]


def test_a_level_far_from_the_data_sheet_is_taken_over(site: str, tmp_path: Path) -> None:
    """A division of layers that takes fifty times what its operations take."""
    found = calibrated(site, tmp_path, {8: 4.0, 16: 4.1}, "--gpus", "32", "--strategy", "data+spatial")
    assert found["points"][0]["step_s"]["value"] == pytest.approx(4.05, rel=0.03)


def test_a_measured_size_that_does_not_fit_is_said(site: str, tmp_path: Path) -> None:
    times = {4: 0.28, 8: 0.45, 16: 0.455, 32: 0.46, 64: 0.75}
    found = calibrated(site, tmp_path, times, "--gpus", "128")
    assert any(text.startswith("64 GPUs") for text in found["calibration"]["remarks"])


def test_of_a_studys_table_weak_and_comparable_times_calibrate(site: str, tmp_path: Path) -> None:
    """In a strong study each size has other samples per worker."""
    head = "nodes,ranks,gpus,seconds,kind,comparable,remarks\n"
    file = tmp_path / "study.csv"
    file.write_text(f"{head}2,8,8,0.45,weak,true,\n4,16,16,0.455,weak,true,\n8,32,32,9.0,weak,false,\n")
    options = ("--gpus", 64, "--strategy", "data", "--calibrate", file)
    assert list(vgg(site, *options)["calibration"]["errors"]) == ["8", "16"]
    file.write_text(f"{head}2,8,8,0.45,strong,true,\n")
    answer = predict("--site", site, "--model", "vgg16", "--batch-per-worker", 32, *options)
    assert (answer.exit_code, "the times of a strong study" in answer.stderr) == (3, True)


def test_milliseconds_in_place_of_seconds_are_said(site: str, tmp_path: Path) -> None:
    slow = calibrated(site, tmp_path, {8: 450, 16: 455}, "--gpus", "64")
    (remark,) = (text for text in slow["calibration"]["remarks"] if "are these seconds" in text)
    assert "times what the origins give: are these seconds per step, of vgg16 with 32 samples" in remark
    not_in_it = {one["name"]: one["origin"] for one in slow["parameters"]}
    assert "calibrated" not in not_in_it["step_deviation_s"] + not_in_it["node_gb_s"]
    fast = calibrated(site, tmp_path, {8: 0.00045, 16: 0.000455}, "--gpus", "64")
    assert any("as the data sheet of the GPU allows" in text for text in fast["calibration"]["remarks"])
    usual = calibrated(site, tmp_path, {8: 0.45, 16: 0.455}, "--gpus", "64")
    assert usual["calibration"]["remarks"] == []


def test_a_level_far_off_is_taken_over_where_sizes_scatter_too() -> None:
    """13 times the stated computation: the origins must not pull the model back below the measured sizes."""
    computing = 0.00181
    terms = [(computing, 0, 0, 0, 0), (computing, 4e-5, 1.9e-5, 0, 0)]
    found = calibrate(terms, [0.0243, 0.0307], [0.1, 1, 1, 1, 1])
    assert max(abs(error) for error in found.errors) < 0.2
    assert found.factors[0] == pytest.approx(13.5, rel=0.2)


def test_what_was_not_measured_does_not_become_less_certain() -> None:
    """One rank takes ten times what was stated: the links, of which it says nothing, keep their range."""
    found = calibrate([(0.01, 0, 0, 0, 0)], [0.1], [0.1, 0.3, 0.3, 0.3, 0.3])
    assert list(found.factors) == pytest.approx([10, 1, 1, 1, 1], rel=0.02)
    assert [found.covariance[i][i] for i in range(1, 5)] == [pytest.approx(0.09)] * 4


def test_no_factor_is_negative() -> None:
    """Faster on more GPUs than a constant allows."""
    terms = [(0.2, 0, 0, 0.001, 0.01), (0.2, 0, 0, 0.002, 0.02)]
    found = calibrate(terms, [0.2083, 0.18], [0.1, 1, 1, 1, 1])
    assert min(found.factors) >= 0


def test_the_ranking_names_neighbours_whose_ranges_overlap() -> None:
    ranges = {
        "data": StepRange(value=1.0, low=0.9, high=1.1),
        "filter": StepRange(value=3.0, low=2.8, high=3.2),
        "spatial": StepRange(value=1.15, low=1.05, high=1.3),
    }
    assert rank(ranges) == (("data", "spatial", "filter"), (("data", "spatial"),))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (("--model", "vgg15"), 3, "no model is named 'vgg15'; did you mean 'vgg16'?"),
        (("--gpus", "8,x"), 3, "'x' is not a number of GPUs"),
        (("--gpus", "8,...,9"), 3, "write as in 8,16,...,1024"),
        (("--calibrate", "/nonexistent.csv"), 3, "cannot be read"),
        (("--tflops", "1e-300"), 3, "'--tflops'"),
        (("--strategy", "model"), 3, "'model' is not one of"),
        (("--network-test-allreduce", "ring"), 2, "--network-test-allreduce is for --network-test"),
    ],
)
def test_wrong_input_is_refused(site: str, options: tuple[str, ...], code: int, message: str) -> None:
    usual = {"--site": site, "--model": "mlp", "--batch-per-worker": "8", "--gpus": "8"}
    words = [word for pair in {**usual, options[0]: options[1]}.items() for word in pair]
    answer = predict(*words)
    assert answer.exit_code == code
    assert message in answer.output


def test_an_impossible_measured_size_is_refused(site: str, tmp_path: Path) -> None:
    file = tmp_path / "measured.csv"
    file.write_text("gpus,seconds_per_step\n6,1\n")
    common = ("--site", site, "--model", "vgg16", "--batch-per-worker", 32, "--gpus", 8)
    answer = predict(*common, "--calibrate", file, "--strategy", "data+spatial")
    assert answer.exit_code == 3
    assert "6 GPUs are not workers of 4" in answer.stderr


def test_a_site_without_speeds_needs_them_stated() -> None:
    common = ("--site", "local", "--model", "mlp", "--batch-per-worker", 64, "--gpus", "1,2")
    answer = predict(*common)
    assert answer.exit_code == 3
    assert "--tflops T" in answer.stderr
    found = document(*common, "--tflops", 0.05, "--memory-gb-s", 10)
    assert [point["fits"] for point in found["points"] if point["strategy"] == "data"] == [None, None]


def test_ranks_that_share_cores_are_not_predicted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four ranks on the two cores of this machine; one of four nodes each has its core."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    speeds = ("--tflops", 0.05, "--memory-gb-s", 10, "--node-gb-s", 10)
    common = ("--site", "local", "--model", "mlp", "--batch-per-worker", 64, "--strategy", "data", *speeds)
    found = document(*common, "--gpus", "2,4")
    assert [point["gpus"] for point in found["points"]] == [2]
    (why,) = found["impossible"]
    assert why["gpus"] == 4
    assert why["why"].startswith("4 ranks share 2 cores (all in one node: --gpus-per-node is not stated): ")
    (alone,) = document(*common, "--gpus", 4, "--gpus-per-node", 1)["points"]
    assert alone["compute_s"] == pytest.approx(found["points"][0]["compute_s"])


def test_the_slowest_of_the_ranks_sets_the_pace(site: str, tmp_path: Path) -> None:
    """The steps of one GPU deviate by 10 ms: the slowest of 2, 16, 512 is 0.56, 1.77, 3.04 deviations late.

    Expected largest of normal values: 1 / sqrt(pi) of two; Tippett 1925 for the others.
    """
    waits = {}
    for deviation in ("", "0.01"):
        (tmp_path / "one.csv").write_text(f"gpus,seconds_per_step,deviation_s\n1,0.26,{deviation}\n")
        options = ("--gpus", "1,2,16,512", "--strategy", "data", "--calibrate", tmp_path / "one.csv")
        found = vgg(site, *options)
        waits[deviation] = [point["communication_s"] for point in found["points"]]
        widths = [point["step_s"]["high"] / point["step_s"]["low"] for point in found["points"]]
        assert [point["waiting_s"] > 0 for point in found["points"]] == [False, *[bool(deviation)] * 3]
    added = [there - here for here, there in zip(*waits.values(), strict=True)]
    assert added == pytest.approx([0, 0.00564, 0.01766, 0.0304], rel=0.05, abs=1e-9)
    assert sorted(widths) == widths
    (deviation,) = [one for one in found["parameters"] if one["name"] == "step_deviation_s"]
    assert deviation["origin"] == "measured: steps of one GPU, or rank"
    assert "not measured: all GPUs are taken to be equally fast" in predict(
        *("--site", site, "--model", "mlp", "--batch-per-worker", 8, "--gpus", 2)
    ).stdout.replace("\n", " ")


def test_a_calibration_on_one_gpu_says_nothing_of_its_neighbours(site: str, tmp_path: Path) -> None:
    """The GPUs of a node share memory and power; a size that fills the node has that in it."""
    one = calibrated(site, tmp_path, {1: 0.26}, "--gpus", "1,4,8", "--strategy", "data")["points"]
    assert [bool(point["remarks"]) for point in one] == [False, True, True]
    assert "4 in a node, but at most 1 when it was measured" in one[2]["remarks"][0]
    node = calibrated(site, tmp_path, {4: 0.3}, "--gpus", "4,8", "--strategy", "data")["points"]
    assert [point["remarks"] for point in node] == [[], []]


def test_one_measured_size_says_that_it_shows_no_growth(site: str, tmp_path: Path) -> None:
    """Two sizes do: then the growth is calibrated and the remark is not there."""
    said = "one size was measured: it sets how long a step takes, not how that changes"
    file = tmp_path / "small.csv"
    for lines, known in (("8,0.9\n", False), ("8,0.9\n64,1.3\n", True)):
        file.write_text(f"gpus,seconds_per_step\n{lines}")
        found = vgg(site, "--gpus", "8,64", "--calibrate", file)
        (growth,) = (one for one in found["parameters"] if one["name"] == "growth")
        assert growth["origin"].startswith("calibrated") == known, growth
        assert any(one.startswith(said) for one in found["calibration"]["remarks"]) != known


def test_one_strategy_is_ranked_before_none(site: str) -> None:
    line = ("--site", site, "--model", "vgg16", "--batch-per-worker", 32, "--gpus", "8,16")
    alone = predict(*line, "--strategy", "data").stdout
    assert "most samples per second" not in alone
    assert alone.count("only data was predicted: --strategy adds others") == 1
    both = predict(*line, "--strategy", "data", "--strategy", "spatial").stdout
    assert both.count("most samples per second") == 2
    assert "was predicted" not in both


def test_strategies_that_were_not_measured_are_said_to_be_so(site: str, tmp_path: Path) -> None:
    """A program that takes ten times what the data sheet promises is no slower than one not measured."""
    file = tmp_path / "small.csv"
    file.write_text("gpus,seconds_per_step\n4,2.1\n8,2.2\n")
    line = ("--gpus", "8", "--calibrate", file, "--strategy", "data")
    said = "data alone was measured: others are predicted as without a measurement"
    both = vgg(site, *line, "--strategy", "data+spatial")["calibration"]["remarks"]
    assert any(one.startswith(said) for one in both)
    assert not any(one.startswith(said) for one in vgg(site, *line)["calibration"]["remarks"])
