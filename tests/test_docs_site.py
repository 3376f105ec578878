"""The documentation as a site: built without a warning, and opened in a real browser."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.version_info < (3, 11), reason="Sphinx needs Python 3.11"),
    pytest.mark.xdist_group("documentation site"),  # which one worker builds for all
]

ROOT = Path(__file__).parents[1]
CONSOLE = re.compile(r"INFO:CONSOLE.*\n?")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site; a page that is in no list, a dead link or anchor is a warning, and so an error."""
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html"]
    done = subprocess.run(
        [*build, ROOT / "docs", folder, "-d", folder / ".doctrees"], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    return folder


class Silent(SimpleHTTPRequestHandler):
    """A web server that does not log."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def address(site: Path) -> Iterator[str]:
    """Where the site is served: search does not work on files."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


def opened(address: str, folder: Path, *, width: int = 1280) -> str:
    """The page as it is after its scripts have run; nothing may appear on the browser's console."""
    options = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={folder}"]
    options += [f"--window-size={width},900", "--virtual-time-budget=10000", "--enable-logging=stderr"]
    done = subprocess.run(["chromium", *options, "--dump-dom", address], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not CONSOLE.findall(done.stderr)
    return done.stdout


def test_the_front_page_shows_what_the_tool_does(address: str, site: Path, tmp_path: Path) -> None:
    page = opened(f"{address}/index.html", tmp_path)
    assert '<img alt="' in page
    assert (site / "_images" / "lumi-g.svg").exists()
    assert "how-to/lumi-g.html" in page


def test_a_how_to_opens_on_a_phone(address: str, tmp_path: Path) -> None:
    page = opened(f"{address}/how-to/lumi-g.html", tmp_path, width=390)
    assert "<h1>LUMI-G" in page


def test_the_search_finds_an_option(address: str, tmp_path: Path) -> None:
    """A word of the table of settings leads to the pages that explain it."""
    page = opened(f"{address}/search.html?q=budget", tmp_path)
    assert re.search(r'href="reference/job\.html[^"]*"', page)
    assert re.search(r'href="reference/commands\.html[^"]*"', page)


def test_every_command_and_option_is_on_the_page_of_commands(site: Path) -> None:
    from hpclaunch.cli.main import COMMANDS

    page = (site / "reference" / "commands.html").read_text()
    assert all(f'id="hpclaunch-{name}"' in page for name in COMMANDS)
    assert "cmdoption-hpclaunch-submit-budget" in page


def test_the_picture_of_the_front_page_is_the_tools_own(tmp_path: Path) -> None:
    """To draw it again: the command below with ``--picture docs/images/lumi-g.svg``."""
    picture = tmp_path / "lumi-g.svg"
    command = [sys.executable, "-m", "hpclaunch", "topology", "--site", "lumi-g", "--tasks-per-node", "8"]
    subprocess.run([*command, "--picture", picture], check=True, capture_output=True)
    assert picture.read_text() == (ROOT / "docs" / "images" / "lumi-g.svg").read_text()
