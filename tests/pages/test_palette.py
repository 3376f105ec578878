"""The colours of drawings, as people with protan and deutan vision see them, and in black and white.

The colours were chosen by a search for large differences; here they are only measured. Differences are
CIEDE2000 (Sharma, Wu and Dalal 2005); colour vision is simulated with the matrices of Machado, Oliveira and
Fernandes (2009, doi 10.1109/TVCG.2009.113), severity 1.0, applied to linear RGB.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest

from hpclaunch.pages.render_page import PALETTE, ink
from hpclaunch.timeline.job_timeline import SHARES
from tests.in_one_test import in_one_test

VISIONS = {
    "usual": np.eye(3),
    "protan": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deutan": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
TO_XYZ = np.array(
    [
        [0.4124564, 0.3575761, 0.1804375],
        [0.2126729, 0.7151522, 0.0721750],
        [0.0193339, 0.1191920, 0.9503041],
    ]
)
"""sRGB (IEC 61966-2-1), white point D65."""
ANY_TWO, NEIGHBOURS, IN_GREY = 15.0, 25.0, 7.0
"""What is demanded: CIEDE2000 of any two colours and of neighbours, and the difference in lightness (L*)."""
Lab = tuple[float, float, float]


def linear(colour: str) -> np.ndarray:
    shares = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    found: np.ndarray = np.where(shares <= 0.04045, shares / 12.92, ((shares + 0.055) / 1.055) ** 2.4)
    return found


def lab(rgb: np.ndarray) -> Lab:
    ratios = TO_XYZ @ np.clip(rgb, 0, 1) / TO_XYZ.sum(axis=1)
    x, y, z = np.where(ratios > 216 / 24389, np.cbrt(ratios), (24389 / 27 * ratios + 16) / 116)
    return float(116 * y - 16), float(500 * (x - y)), float(200 * (y - z))


def difference(one: Lab, two: Lab) -> float:
    """CIEDE2000."""
    mean = (np.hypot(one[1], one[2]) + np.hypot(two[1], two[2])) / 2
    stretch = 1 + 0.5 * (1 - np.sqrt(mean**7 / (mean**7 + 25.0**7)))
    a1, a2 = one[1] * stretch, two[1] * stretch
    c1, c2 = np.hypot(a1, one[2]), np.hypot(a2, two[2])
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, one[2]), (a2, two[2])))
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180
    hue = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360
    chroma, light = (c1 + c2) / 2, (one[0] + two[0]) / 2
    t = 1 - 0.17 * np.cos(np.radians(hue - 30)) + 0.24 * np.cos(np.radians(2 * hue))
    t += 0.32 * np.cos(np.radians(3 * hue + 6)) - 0.2 * np.cos(np.radians(4 * hue - 63))
    dl = (two[0] - one[0]) / (1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2))
    dc = (c2 - c1) / (1 + 0.045 * chroma)
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / (1 + 0.015 * chroma * t)
    spin = 30 * np.exp(-(((hue - 275) / 25) ** 2))
    rotation = -np.sin(np.radians(2 * spin)) * 2 * np.sqrt(chroma**7 / (chroma**7 + 25.0**7))
    return float(np.sqrt(dl**2 + dc**2 + dh**2 + rotation * dc * dh))


def contrast(one: str, two: str) -> float:
    """Return the contrast ratio of WCAG 2.2."""
    low, high = sorted(float(TO_XYZ[1] @ linear(colour)) for colour in (one, two))
    return (high + 0.05) / (low + 0.05)


@in_one_test(
    "one, two, expected",
    [
        ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
        ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
        ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ],
)
def test_the_difference_is_that_of_the_published_pairs(one: Lab, two: Lab, expected: float) -> None:
    assert difference(one, two) == pytest.approx(expected, abs=1e-4)


@in_one_test("vision", VISIONS)
def test_colours_stay_apart_for_each_vision(vision: str) -> None:
    seen = {colour: lab(VISIONS[vision] @ linear(colour)) for colour in PALETTE["colours"]}
    assert len(seen) == 9 >= len(SHARES)
    apart = {pair: difference(seen[pair[0]], seen[pair[1]]) for pair in combinations(seen, 2)}
    assert min(apart.values()) >= ANY_TWO
    around = [*PALETTE["colours"], PALETTE["colours"][0]]
    assert min(difference(seen[one], seen[two]) for one, two in pairwise(around)) >= NEIGHBOURS


def test_the_former_colours_would_not_pass() -> None:
    """Of the node map, ranks 1 and 4 for protan and deutan eyes: a check of the check."""
    for vision in ("protan", "deutan"):
        one, two = (lab(VISIONS[vision] @ linear(colour)) for colour in ("#56b4e9", "#7fa8e0"))
        assert difference(one, two) < ANY_TWO / 2


def test_colours_stay_apart_in_black_and_white() -> None:
    lights = sorted(lab(linear(colour))[0] for colour in PALETTE["colours"])
    assert min(high - low for low, high in pairwise(lights)) >= IN_GREY


def test_text_is_readable_on_each_colour_and_paper() -> None:
    """WCAG 2.2: 4.5 for text, 3 for lines."""
    for colour in (*PALETTE["colours"], "#ffffff", "#dddddd"):
        assert contrast(ink(colour), colour) >= 4.5, colour
    for scheme in (PALETTE["light"], PALETTE["dark"]):
        for name in ("ink", "faint", "wrong"):
            assert contrast(scheme[name], scheme["paper"]) >= 4.5, name
        assert contrast(scheme["ink"], scheme["card"]) >= 4.5
        for name in ("line", "late", "wrong"):
            assert contrast(PALETTE[name], scheme["paper"]) >= 3, name
