"""``hpclaunch scale import``: the table, the fit and the forms of a study from a CSV file."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from hpclaunch.cli.main import program


def scale_import(folder: Path, text: str, *options: str) -> Result:
    file = folder / "times.csv"
    file.write_text(text)
    return CliRunner().invoke(program, ["scale", "import", str(file), *options])


def document(folder: Path, text: str, *options: str) -> dict[str, Any]:
    answer = scale_import(folder, text, "--json", *options)
    assert answer.exit_code == 0, answer.output
    found: dict[str, Any] = json.loads(answer.stdout)
    return found


def lines(times: Mapping[int, float], column: str = "gpus") -> str:
    return "\n".join([f"{column},seconds", *(f"{p},{t}" for p, t in times.items())])


STRONG = {p: 2 + 98 / p for p in (1, 2, 4, 8, 16)}


def test_the_keys_of_the_document(tmp_path: Path) -> None:
    study = document(tmp_path, lines(STRONG), "--kind", "strong", "--gpus-per-node", "4", "--name", "mine")
    assert list(study) == ["study", "kind", "points", "fit", "recommended"]
    assert (study["study"], study["kind"]) == ("mine", "strong")
    point = study["points"][3]
    assert list(point) == [
        *("nodes", "ranks", "gpus", "step_s", "throughput", "speedup", "efficiency", "plus_minus"),
        *("karp_flatt", "comparable", "remarks"),
    ]
    assert (point["nodes"], point["ranks"], point["gpus"]) == (2, 8, 8)
    assert point["step_s"] == {
        "median": 2 + 98 / 8,
        "min": 2 + 98 / 8,
        "spread": None,
        "deviation": None,
        "plus_minus": None,
        "seconds": [2 + 98 / 8],
    }
    assert (point["comparable"], point["remarks"], point["throughput"]) == (True, [], None)


@pytest.mark.parametrize("kind", ["strong", "weak"])
@pytest.mark.parametrize("column", ["images/s", "samples_per_second"])
def test_rates_in_place_of_seconds(kind: str, column: str, tmp_path: Path) -> None:
    """Twice the images per second is a speed-up of 2, whether the work grows or not."""
    text = f"gpus,{column}\n2,100\n4,180\n8,200"
    study = document(tmp_path, text, "--kind", kind)
    assert [point["speedup"] for point in study["points"]] == pytest.approx([1, 1.8, 2])
    assert [point["throughput"] for point in study["points"]] == pytest.approx([100, 180, 200])
    step = document(tmp_path, text, "--kind", kind, "--work", "50")["points"][2]["step_s"]["median"]
    assert step == pytest.approx(50 / 200 * (4 if kind == "weak" else 1))


def test_amdahl_is_returned(tmp_path: Path) -> None:
    """T = 2 + 98 / p: speed-ups, Karp-Flatt's fraction and the fit by hand."""
    study = document(tmp_path, lines(STRONG), "--kind", "strong")
    two = study["points"][1]
    assert two["speedup"] == pytest.approx(100 / 51)
    assert two["efficiency"] == pytest.approx(100 / 102)
    assert [point["karp_flatt"] for point in study["points"]] == [None, *[pytest.approx(0.02)] * 4]
    fit = study["fit"]
    assert fit["serial_fraction"] == pytest.approx(0.02)
    assert fit["parameters"]["serial_s"]["value"] == pytest.approx(2)
    assert [(item["size"], item["step_s"]) for item in fit["next"]] == [
        (32, pytest.approx(2 + 98 / 32)),
        (64, pytest.approx(2 + 98 / 64)),
    ]
    assert fit["leave_one_out_error"] == pytest.approx(0, abs=1e-9)


def test_alpha_and_beta_of_a_weak_study_are_within_the_stated_error(tmp_path: Path) -> None:
    """T = 0.5 + 2 (p - 1) / p x 0.1 + 2 (p - 1) x 1e-4, measured with errors of at most 1 %."""
    noise = [1.004, 0.995, 1.006, 0.993, 1.003, 0.997, 1.001]
    times = {p: 0.5 + 0.2 * (p - 1) / p + 2e-4 * (p - 1) for p in (1, 2, 4, 8, 16, 64, 256)}
    measured = {p: t * n for (p, t), n in zip(times.items(), noise, strict=True)}
    study = document(tmp_path, lines(measured), "--kind", "weak")
    fit = study["fit"]
    assert fit["law"] == "Gustafson, ring latency"
    for name, true in (("serial_s", 0.5), ("exchange_s", 0.1), ("alpha_ring_s", 1e-4)):
        found = fit["parameters"][name]
        assert abs(found["value"] - true) <= found["plus_minus"] < 0.5 * true, name
    for item in fit["next"]:
        p = item["size"]
        assert item["low"] <= 0.5 + 0.2 * (p - 1) / p + 2e-4 * (p - 1) <= item["high"]
    assert study["points"][1]["efficiency"] == pytest.approx(measured[1] / measured[2])
    assert study["points"][1]["karp_flatt"] is None


def test_a_serial_fraction_and_a_latency_are_within_the_stated_error(tmp_path: Path) -> None:
    noise = [1.002, 0.996, 1.004, 0.997, 1.005, 0.998]
    measured = {
        p: n * (1 + 99 / p + 2 * (p - 1) * 0.01) for p, n in zip((1, 2, 4, 8, 16, 32), noise, strict=True)
    }
    fit = document(tmp_path, lines(measured), "--kind", "strong")["fit"]
    for name, true in (("serial_s", 1.0), ("parallel_s", 99.0), ("alpha_ring_s", 0.01)):
        found = fit["parameters"][name]
        assert abs(found["value"] - true) <= found["plus_minus"], name
    assert fit["serial_fraction"] == pytest.approx(0.01, rel=0.5)


def test_a_range_includes_the_values_of_a_law_that_fits_as_well(tmp_path: Path) -> None:
    """Four sizes cannot tell 2 (p - 1) from log2(p): the serial part of both laws is in the range."""
    noise = (1.002, 0.996, 1.004, 0.997)
    measured = {p: noise[p - 1] * (20 + 80 / p + 4 * (p - 1)) for p in (1, 2, 3, 4)}
    fit = document(tmp_path, lines(measured), "--kind", "strong")["fit"]
    (remark,) = (text for text in fit["remarks"] if "fits nearly as well" in text)
    other = float(re.findall(r"serial_s ([\d.]+)", remark)[0])
    serial = fit["parameters"]["serial_s"]
    for value in (20, other):
        assert abs(serial["value"] - value) <= serial["plus_minus"] * 1.001


def test_no_parameter_is_negative(tmp_path: Path) -> None:
    """Faster with more GPUs than a constant allows: the terms that would be negative are zero."""
    fit = document(tmp_path, lines({8: 0.2083, 16: 0.203, 32: 0.2066, 64: 0.2457}), "--kind", "weak")["fit"]
    assert min(parameter["value"] for parameter in fit["parameters"].values()) >= 0


def test_super_linear_and_collapsed_points_are_named_with_what_they_cross(tmp_path: Path) -> None:
    times = {1: 100, 2: 40, 4: 24, 8: 14, 16: 15}
    study = document(tmp_path, lines(times), "--kind", "strong", "--gpus-per-node", "8")
    remarks = [" ".join(point["remarks"]) for point in study["points"]]
    assert [text.partition(":")[0] for text in remarks] == [
        "",
        "super-linear",
        "super-linear",
        "",
        "collapse",
    ]
    assert "the node of 8" in remarks[-1]


def test_repeats_give_median_minimum_and_spread_and_an_outlier_is_marked(tmp_path: Path) -> None:
    text = "ranks,nodes,seconds\n1,1,10\n1,1,10.1\n1,1,10.05\n2,1,5.1\n2,1,5\n2,1,5.05\n2,1,9\n"
    one, two = document(tmp_path, text, "--kind", "strong", "--work", "640")["points"]
    assert two["step_s"] == {
        "median": pytest.approx(5.075),
        "min": 5,
        "spread": 4,
        "deviation": pytest.approx(1.4826 * math.log(5.1 / 5.05), rel=0.01),
        "plus_minus": pytest.approx(2.35 / 2 * 1.4826 * math.log(5.1 / 5.05), rel=0.01),
        "seconds": [5.1, 5, 5.05, 9],
    }
    assert (two["gpus"], two["nodes"], two["throughput"]) == (None, 1, pytest.approx(640 / 5.075))
    assert one["remarks"] == []
    assert two["remarks"] == ["outlier: 9 s, +77% of the median"]


def test_the_recommended_size_and_the_node_hours(tmp_path: Path) -> None:
    options = ("--kind", "strong", "--gpus-per-node", "4", "--steps", "36000", "--efficiency", "0.8")
    best = document(tmp_path, lines(STRONG), *options)["recommended"]
    assert (best["gpus"], best["nodes"]) == (8, 2)
    assert best["hours"] == pytest.approx(10 * 14.25)
    assert best["node_hours"] == pytest.approx(2 * 10 * 14.25)
    assert "8 GPUs (2 nodes): 88%" in best["sentence"]
    weak = ("--kind", "weak", "--gpus-per-node", "1", "--steps", "3600")
    grown = document(tmp_path, lines({1: 1.0, 2: 1.25}), *weak)["recommended"]
    assert grown["hours"] == pytest.approx(1.25 / 2)


@pytest.mark.parametrize(
    ("times", "size", "said", "unsaid"),
    [
        ({2: (10, 13), 4: (7, 9)}, 2, ("faster than smaller ones, is 2 GPUs", "4 GPUs cost more and"), ""),
        ({2: (10, 10.1), 4: (6, 6.1)}, 4, ("efficiency of at least 70% is 4 GPUs",), "cost more"),
        ({2: (10, 10), 4: (7, 7), 8: (8.1, 8.2)}, 4, ("70% is 4 GPUs",), "Whether"),
        ({2: (10, 10.4), 4: (6.8, 7.2)}, 4, ("Whether 4 GPUs have that efficiency is not known",), "2, 4"),
        ({2: (10, 10.1), 4: (5.0, 5.1), 8: (3.5, 3.8)}, 4, ("Whether 8 GPUs have that",), "cost more"),
        ({2: (10,), 4: (7,)}, 4, ("70% is 4 GPUs",), "Whether"),
    ],
)
def test_sizes_that_the_repeats_do_not_tell_apart_are_named(
    tmp_path: Path, times: dict[int, tuple[float, ...]], size: int, said: tuple[str, ...], unsaid: str
) -> None:
    """The cheaper of two equal ones is recommended, and a limit within an interval is no plain yes or no."""
    text = "gpus,seconds\n" + "".join(f"{n},{one}\n" for n, them in times.items() for one in them)
    best = document(tmp_path, text, "--kind", "strong")["recommended"]
    assert best["gpus"] == size
    assert all(words in best["sentence"] for words in said), best["sentence"]
    assert not unsaid or unsaid not in best["sentence"]


def test_a_size_that_is_slower_than_a_smaller_one_is_not_recommended(tmp_path: Path) -> None:
    times = lines({2: 10.0, 4: 6.0, 8: 6.5})
    best = document(tmp_path, times, "--kind", "strong", "--efficiency", "0.3")["recommended"]
    assert best["gpus"] == 4
    assert "8 GPUs cost more and are not faster" in best["sentence"]


def test_the_page_has_speed_up_and_efficiency_with_shapes_as_well_as_colours(tmp_path: Path) -> None:
    """Steady repeats collapse on 4: its point is a triangle in each plot; all sizes have error bars."""
    text = "ranks,seconds\n1,10\n1,10.1\n2,5\n2,5.05\n4,9\n4,9.05\n"
    page = tmp_path / "page.html"
    document(tmp_path, text, "--kind", "strong", "--html", str(page))
    html = page.read_text()
    assert html.count('class="point noted"') == 3
    assert html.count('class="point ink"') == 6
    assert html.count('class="bar"') == 9
    assert all(f">{name}</text>" in html for name in ("seconds per step", "speed-up", "efficiency"))


def test_no_range_has_no_width(tmp_path: Path) -> None:
    """Laws fit these times exactly; 64 GPUs took 0.2633 s. The law that fits as well is in the range."""
    for times, kind in (({8: 0.2040, 16: 0.2178, 32: 0.2316}, "weak"), ({1: 10, 2: 5.2, 4: 2.8}, "strong")):
        fit = document(tmp_path, lines(times), "--kind", kind)["fit"]
        for item in fit["next"]:
            assert item["low"] < 0.98 * item["step_s"] < 1.02 * item["step_s"] < item["high"]
        assert fit["parameters"]["serial_s"]["plus_minus"] > 0.01 * fit["parameters"]["serial_s"]["value"]
        if kind == "weak":
            assert fit["next"][0]["low"] < 0.2633 < fit["next"][0]["high"]
            ring = 0.07118 + 0.0736 * 2 * 127 / 128 + 0.0002875 * 2 * 127
            assert fit["next"][1]["low"] < ring < fit["next"][1]["high"]


def test_two_points_have_a_range_and_too_few_is_said(tmp_path: Path) -> None:
    study = document(tmp_path, lines({4: 10.0, 8: 6.0}), "--kind", "strong")
    first = study["fit"]["next"][0]
    assert 3 <= first["low"] < first["step_s"] < first["high"]
    assert "too few" in study["fit"]["remarks"][0]
    assert document(tmp_path, lines({4: 10.0}), "--kind", "strong")["fit"] is None


def test_a_curve_that_no_law_fits_is_said(tmp_path: Path) -> None:
    fit = document(tmp_path, lines({1: 522.3, 2: 318.8, 4: 121.4, 8: 73.5, 16: 79.1}), "--kind", "strong")[
        "fit"
    ]
    assert any("no law fits" in remark for remark in fit["remarks"])


def test_csv_markdown_and_text_hold_the_same_efficiencies(tmp_path: Path) -> None:
    found = scale_import(tmp_path, lines(STRONG), "--kind", "strong", "--csv").stdout
    table = list(csv.DictReader(io.StringIO(found)))
    assert {(row["kind"], row["comparable"]) for row in table} == {("strong", "true")}
    assert [float(row["efficiency"]) for row in table] == [
        pytest.approx(100 / (p * t)) for p, t in STRONG.items()
    ]
    for form in (["--markdown"], []):
        text = scale_import(tmp_path, lines(STRONG), "--kind", "strong", *form).stdout
        assert all(f"{100 / (p * t):.3f}" in text for p, t in STRONG.items())
    marks = scale_import(tmp_path, lines(STRONG), "--kind", "strong", "--markdown").stdout.splitlines()
    assert {line.count("|") for line in marks if line.startswith("|")} == {6}


def test_a_size_that_is_slower_than_its_neighbours_makes_two_remarks(tmp_path: Path) -> None:
    text = "gpus,seconds\n8,4.0\n16,2.1\n32,1.12\n64,2.0\n128,0.5\n256,0.26\n"
    points = document(tmp_path, text, "--kind", "strong")["points"]
    assert {point["gpus"]: point["remarks"] for point in points if point["remarks"]} == {
        64: ["collapse: 1.79 times the time with 32 GPUs"],
        128: ["more than linear: 4.00 times as fast as 64 GPUs: was that slowed down?"],
    }


def test_the_picture_and_the_page(tmp_path: Path) -> None:
    svg, html = tmp_path / "a.svg", tmp_path / "a.html"
    named = ("--name", "<b>&", "--svg", str(svg), "--html", str(html))
    text = "gpus,seconds\n1,100\n1,104\n2,51\n4,26.5\n8,14.25\n"
    assert scale_import(tmp_path, text, "--kind", "strong", *named).exit_code == 0
    root = ElementTree.fromstring(svg.read_text())
    space = "{http://www.w3.org/2000/svg}"
    kinds = Counter(element.get("class", "").partition(" ")[0] for element in root.iter())
    assert (kinds["band"], kinds["fit"], kinds["ideal"], kinds["point"]) == (3, 3, 4, 12)
    points = [each for each in root.iter(f"{space}circle") if each.get("class", "").startswith("point")]
    heights = [float(circle.get("cy", "0")) for circle in points]
    assert heights[:4] == sorted(heights[:4])  # faster is lower
    assert heights[4:8] == sorted(heights[4:8], reverse=True)  # speed-up
    assert heights[8:] == sorted(heights[8:])  # efficiency
    page = html.read_text()
    assert "&lt;b&gt;&amp;" in page
    assert "<b>&" not in page
    assert re.findall("<script[^>]*>", page) == ["<script type='application/json' id='document'>"]  # data
    assert not re.search(r"src=|href=(?!'data:,')", page)


def test_a_point_with_a_remark_has_another_shape_and_a_law_that_does_not_fit_is_not_drawn(
    tmp_path: Path,
) -> None:
    svg, html = tmp_path / "a.svg", tmp_path / "a.html"
    text = "gpus,seconds\n8,4.0\n16,2.1\n32,1.2\n64,0.66\n128,0.7\n"
    scale_import(tmp_path, text, "--kind", "strong", "--svg", str(svg), "--html", str(html))
    root = ElementTree.fromstring(svg.read_text())
    shapes = Counter((each.tag.split("}")[1], each.get("class")) for each in root.iter())
    assert shapes["path", "point noted"] == 3, "the collapse, in each of the three plots"
    assert shapes["circle", "point ink"] == 12
    assert not [kind for _, kind in shapes if kind in ("fit", "band")]
    assert "no law is drawn: none fits these points" in svg.read_text()
    assert "<td>16</td><td>2.1</td>" in html.read_text()
    assert "<p class='note'>128: collapse: " in html.read_text()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "times.csv: empty"),
        ("gpus,seconds\n", "no measured size"),
        ("gpus,time\n1,2\n", "times.csv:1: no column 'seconds' among gpus, time"),
        ("nodes,seconds\n1,2\n", "times.csv:1: no column 'gpus' or 'ranks'"),
        ("gpus,seconds\n1,2\n2,x\n", "times.csv:3: seconds is 'x'"),
        ("gpus,seconds\n1,-2\n", "seconds is '-2'; it must be a number above 0"),
        ("gpus,seconds\n1,nan\n", "seconds is 'nan'"),
        ("gpus,seconds\n1,1e-300\n", "seconds is '1e-300'; it must be a number from 1e-09 to 1e+09"),
        ("gpus,seconds\n0,2\n", "times.csv:2: gpus is '0'"),
        ("gpus,seconds\n1,2,3\n", "times.csv:2: 3 values, but 2 columns"),
        ("gpus,gpus,seconds\n1,2,3\n", "the column gpus appears twice"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    answer = scale_import(tmp_path, text, "--kind", "strong")
    assert answer.exit_code == 3
    assert message in answer.stderr


def test_comments_semicolons_and_a_byte_order_mark_are_read(tmp_path: Path) -> None:
    text = "\ufeff# mine\nSeconds;GPUs\n\n4;1\n2;2\n"
    assert [point["ranks"] for point in document(tmp_path, text, "--kind", "strong")["points"]] == [1, 2]
