"""All pages and drawings that the commands make: large enough text, one palette, both schemes."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import msgspec
import pytest

from hpclaunch.pages.render_page import PALETTE
from hpclaunch.usage.report_documents import ReportDocument
from hpclaunch.usage.report_page import page as report_page
from tests.in_process import hpclaunch_here

DATA = Path(__file__).parents[1] / "data"
SMALLEST_PX = 11
CLEAR = 4.5
TIMES = "gpus,seconds\n8,4.0\n8,4.2\n16,2.1\n32,1.12\n64,0.66\n128,0.7\n"
LOOKS = """
<script>
const channels = colour => colour.match(/[0-9.]+/g).map(Number);
const light = colour => channels(colour).slice(0, 3).map(part => part / 255)
  .map(part => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
  .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
const opaque = colour => colour.startsWith('rgb') && (channels(colour)[3] ?? 1) > 0.5;
const ground = each => {
  const style = getComputedStyle(each), shape = /^(rect|path|circle|polygon)$/.test(each.tagName);
  return [shape ? style.fill : style.backgroundColor].find(opaque);
};
let texts = [];
for (const each of document.querySelectorAll('body, body *')) {
  const own = [...each.childNodes].some(node => node.nodeType == 3 && node.data.trim());
  if (!own || each.closest('script, style, title, noscript')) continue;
  const drawn = each instanceof SVGElement, style = getComputedStyle(each);
  const turned = drawn ? each.getScreenCTM() : {a: 1, b: 0};
  const size = parseFloat(style.fontSize) * Math.hypot(turned.a, turned.b);
  each.scrollIntoView({block: 'center', inline: 'center'});
  const box = each.getBoundingClientRect();
  const below = document.elementsFromPoint(box.x + box.width / 2, box.y + box.height / 2);
  const paper = below.map(ground).find(Boolean) ?? ground(document.body) ?? ground(document.documentElement);
  const both = [drawn ? style.fill : style.color, paper ?? 'rgb(255, 255, 255)'].map(light);
  const contrast = (Math.max(...both) + 0.05) / (Math.min(...both) + 0.05);
  texts.push([each.tagName, each.textContent.trim().slice(0, 40), size, contrast]);
}
const wide = document.documentElement.scrollWidth - window.innerWidth;
const paper = light(ground(document.body) ?? ground(document.documentElement) ?? 'rgb(255, 255, 255)');
document.body.innerHTML = '<pre>' + JSON.stringify([texts, wide, paper]).replaceAll('<', ' ') + '</pre>';
</script>
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Return a page or drawing of each kind that the commands make."""
    folder = tmp_path_factory.mktemp("pages")
    (folder / "times.csv").write_text(TIMES)
    found = {name: folder / name for name in ("times.html", "times.svg", "node.svg", "timeline.html")}
    report = folder / "report.html"
    text = (DATA / "on_gpu/fake-h100x2/report/report.json").read_bytes()
    report.write_text(report_page(msgspec.json.decode(text, type=ReportDocument)))
    study = ("--kind", "strong", "--html", str(found["times.html"]), "--svg", str(found["times.svg"]))
    timeline = str(DATA / "timelines/nocache-slow-rank1.json")
    for words in (
        ("scale", "import", str(folder / "times.csv"), *study),
        ("topology", "--site", "lumi-g", "--picture", str(found["node.svg"])),
        ("timeline", timeline, "--html", str(found["timeline.html"])),
    ):
        assert hpclaunch_here(*words).returncode == 0
    return {**found, "report.html": report}


def drawings(text: str) -> Iterator[ElementTree.Element]:
    for drawing in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        yield from ElementTree.fromstring(drawing).iter()


def test_text_has_11_pixels_and_more(made: dict[str, Path]) -> None:
    for name, path in made.items():
        text = path.read_text()
        sizes = re.findall(r"font-size[=:]['\"]?([0-9.]+)(px|rem|em)?", text)
        sizes += [(size, "px") for size in re.findall(r"font:([0-9.]+)px", text)]
        pixels = [float(size) * (15 if unit in ("rem", "em") else 1) for size, unit in sizes]
        assert pixels, name
        assert min(pixels) >= SMALLEST_PX, name
        for element in drawings(text):
            if element.tag.endswith("text") and name.endswith(".svg"):
                assert float(element.attrib["font-size"]) >= SMALLEST_PX, (name, element.text)


def test_colours_are_those_of_the_palette_or_grey(made: dict[str, Path]) -> None:
    schemes = {colour for name in ("light", "dark") for colour in PALETTE[name].values()}
    known = {*PALETTE["colours"], *(PALETTE[name] for name in ("line", "late", "wrong")), *schemes}
    for name, path in made.items():
        found = set(
            re.findall(
                r"#[0-9a-f]{6}\b", re.sub(r"<script.*?</script>", "", path.read_text(), flags=re.DOTALL)
            )
        )
        assert {each for each in found - known if len({each[1:3], each[3:5], each[5:7]}) > 1} == set(), name


def test_each_page_and_drawing_has_a_dark_scheme(made: dict[str, Path]) -> None:
    for name, path in made.items():
        text = path.read_text()
        dark = text.partition("prefers-color-scheme:dark")[2].partition("</style>")[0]
        assert PALETTE["dark"]["ink"] in dark, name
        assert PALETTE["dark"]["paper"] in dark, name


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["dark", "light"])
@pytest.mark.parametrize("width", [390, 1280])
def test_in_a_browser_text_is_large_and_clear_on_narrow_and_wide_windows(
    made: dict[str, Path], tmp_path: Path, width: int, scheme: str
) -> None:
    """A narrow window scrolls drawings and shrinks none; the page itself is as wide as the window.

    Contrast of text: at least 4.5 (WCAG 2.2, success criterion 1.4.3).
    """
    for name in ("times.html", "timeline.html", "report.html"):
        page = tmp_path / name
        page.write_text(made[name].read_text().replace("</body>", f"{LOOKS}</body>"))
        options = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path / 'profile'}",
        ]
        # A window of its own cannot be narrower than 500 pixels; a frame can.
        frame = tmp_path / "frame.html"
        frame.write_text(f"<iframe width={width} height=900 src={name}></iframe>")
        options.append(f"--blink-settings=preferredColorScheme={['dark', 'light'].index(scheme)}")
        options += ["--allow-file-access-from-files", "--virtual-time-budget=5000", "--dump-dom"]
        copy = "<script>onload=()=>{document.body.append(frames[0].document.body.innerText)}</script>"
        frame.write_text(frame.read_text() + copy)
        done = subprocess.run(["chromium", *options, frame.as_uri()], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found = re.search(r"(\[\[.*\]\s*,\s*-?[0-9.]+\s*,\s*[0-9.]+\])", done.stdout, re.DOTALL)
        assert found, done.stdout
        texts, too_wide, paper = json.loads(found[1].replace("&amp;", "&").replace("&gt;", ">"))
        assert len(texts) > 20
        assert (paper < 0.5) is (scheme == "dark")
        assert [each for each in texts if each[2] < SMALLEST_PX] == []
        assert [each for each in texts if each[3] < CLEAR] == []
        assert too_wide <= 0, name
