"""The documentation as a site, opened in a real browser, and a newcomer who follows its first page."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.test_docs import assert_printed, blocks

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("docs site")]  # built once, by one worker

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
TUTORIAL = ROOT / "docs" / "tutorial.md"
CONSOLE = re.compile(r"INFO:CONSOLE.*\n?")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as the tutorial builds it; a page in no list, a dead link or anchor is an error."""
    folder = tmp_path_factory.mktemp("site")
    (line,) = re.findall(r"^python (-m sphinx .*) docs site$", TUTORIAL.read_text(), re.MULTILINE)
    build = [sys.executable, *shlex.split(line), "--keep-going", "-q", "-d", f"{folder}/.doctrees"]
    done = subprocess.run([*build, ROOT / "docs", folder], capture_output=True, text=True)
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


def terminal_of_a_newcomer(folder: Path, users_environment: dict[str, str]) -> dict[str, str]:
    """A fresh home, and nothing of ours on the path; pip's configuration and downloads stay the user's."""
    ours = {str(Path(sys.executable).parent), f"{users_environment.get('VIRTUAL_ENV')}/bin"}
    path = [part for part in os.environ["PATH"].split(os.pathsep) if part not in ours]
    foreign = ("XDG_", "VIRTUAL_ENV", "PYTHONPATH")
    outer = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    configuration = users_environment.get("XDG_CONFIG_HOME", str(Path.home() / ".config"))
    cache = users_environment.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    pip = {"PIP_CONFIG_FILE": f"{configuration}/pip/pip.conf", "PIP_CACHE_DIR": f"{cache}/pip"}
    pip["PIP_COMPILE"] = "0"  # of the modules that pip installs few are loaded
    home = folder / "a new home"
    home.mkdir()
    return {**pip, **outer, "HOME": str(home), "PATH": os.pathsep.join(path), "COLUMNS": "110"}


def pages_found(page: str) -> set[str]:
    """The pages that the search lists."""
    (results,) = re.findall(r'<ul [^>]*class="search">(.*?)</ul>', page, re.DOTALL)
    return set(re.findall(r'href="([^"#?]+)\.html', results))


@pytest.mark.mpi
def test_a_newcomer_follows_the_tutorial(
    address: str, tmp_path: Path, users_environment: dict[str, str]
) -> None:
    """From a fresh checkout: README's first command, then each command of the page, in one terminal.

    Each prints what the page shows, and the site's search finds the pages that it names.
    """
    checkout = tmp_path / "it's a checkout"
    left_out = shutil.ignore_patterns(".git", ".venv", ".*_cache", ".hypothesis", "__pycache__")
    shutil.copytree(ROOT, checkout, ignore=left_out)
    steps = blocks(TUTORIAL)
    assert steps[0][0].splitlines()[0] == re.findall(r"```sh\n(.*)", README.read_text())[0]
    typed = "".join(f"{commands}\nprintf '\\0'\n" for commands, _ in steps)
    terminal = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", typed],
        cwd=checkout,
        env=terminal_of_a_newcomer(tmp_path, users_environment),
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert terminal.returncode == 0, f"{terminal.stdout}\n{terminal.stderr}"
    for (commands, prints), output in zip(steps, terminal.stdout.split("\0"), strict=False):
        assert_printed(output, commands, prints)

    word, pages = re.findall(r"`(\w+)` finds, among others:\n\n((?:- .*\n)+)", TUTORIAL.read_text())[0]
    found = pages_found(opened(f"{address}/search.html?q={word}", tmp_path / "browser"))
    named = re.findall(r"\]\((.*)\.md\)", pages)
    assert set() < set(named) <= found
    assert "reference/glossary" not in found  # the side bar leads to all pages
