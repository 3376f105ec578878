"""Downloads from mirrors that are good, bad, mute or absent: all real HTTP over the loopback interface."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from hpclaunch.train.data import dataset, mnist_download, mnist_files
from hpclaunch.train.data.dataset import Dataset, load_dataset
from hpclaunch.train.run_errors import BadDataError, BadRequestError
from tests.train.mirror import (
    CommandResult,
    all_files,
    good_answers,
    says,
    sends,
    sends_without_end,
    serving,
    small_contents,
    small_files,
)

pytestmark = pytest.mark.slow  # servers of files

ROOT = Path(__file__).parents[2]
IMAGES = "train-images-idx3-ubyte.gz"

# Each way in which a mirror answers with something other than the right file, and what is said of it.
DAMAGE: dict[str, tuple[CommandResult, str]] = {
    "another set": (sends(gzip.compress(small_contents()[2])), "wrong checksum"),
    "a web page": (sends(b"<html>Please log in</html>"), "0x3c68746d"),
    "nothing": (sends(b""), "only 0 bytes"),
    "cut transfer": (
        sends(gzip.compress(small_contents()[0])[:1000], announced=2000),
        "cut: 1,000 bytes of 2,000",
    ),
    "cut at the source": (sends(gzip.compress(small_contents()[0])[:1000]), "cut or damaged"),
    "announced too large": (sends(b"", announced=10_000_000_000), "announces 10,000,000,000 bytes"),
    "sent too large": (sends_without_end, "sends more than"),
    "not found": (says(404), "answered 404"),
    "broken server": (says(503), "answered 503"),
    "redirect to a file": (says(302, Location="file:///etc/hostname"), "not allowed"),
    "redirect to ftp": (says(302, Location="ftp://127.0.0.1/x"), "redirect to ftp refused"),
}


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "MNIST_FILES", small_files())
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@pytest.fixture
def dead_mirror() -> Iterator[str]:
    """An address at which nothing listens; the port stays taken, so that nothing else starts to."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"


def assert_small_mnist(data: Dataset) -> None:
    contents = small_contents()
    assert data.name == "mnist"
    assert data.train_images.tobytes() == contents[0][16:]
    assert data.train_labels.tobytes() == contents[1][8:]
    assert data.test_images.tobytes() == contents[2][16:]
    assert data.test_labels.tobytes() == contents[3][8:]


def assert_cache_complete(cache: Path) -> None:
    """Exactly the four right files, no temporary left."""
    assert sorted(path.name for path in cache.iterdir()) == sorted(file.name for file in small_files())
    for file in small_files():
        content = gzip.decompress((cache / file.name).read_bytes())
        assert hashlib.sha256(content).hexdigest() == file.content_sha256


def test_good_mirror_fills_the_cache_and_is_asked_once(tmp_path: Path) -> None:
    cache = tmp_path / "deep" / "cache"
    lines: list[str] = []
    with serving(good_answers()) as mirror:
        first = load_dataset("mnist", cache_dir=cache, mirrors=[mirror.url], log=lines.append)
        again = load_dataset("mnist", cache_dir=cache, mirrors=[mirror.url], log=lines.append)
    assert mirror.asked == [file.name for file in small_files()]
    assert_small_mnist(first)
    assert_small_mnist(again)
    assert first.source == mirror.url
    assert again.source == f"cache {cache}"
    assert_cache_complete(cache)
    # Standard error is no terminal here: plain lines, one at the start and one at the end of each file.
    assert [line.split()[0] for line in lines] == ["downloading", "downloaded"] * 4


def test_what_speaks_http_is_loaded_for_a_download_only() -> None:
    """Every rank of every run would load it at its start."""
    show = "import sys, hpclaunch.train.command_line; print({'ssl', 'socket', 'email'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", show], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_default_cache_is_in_the_users_cache_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with serving(good_answers()) as mirror:
        load_dataset(mirrors=[mirror.url])
    assert_cache_complete(tmp_path / "hpclaunch" / "mnist")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative/is/ignored")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert mnist_files.default_cache() == tmp_path / "home" / ".cache" / "hpclaunch" / "mnist"


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_answer_sends_to_the_next_mirror(kind: str, tmp_path: Path) -> None:
    answer, said = DAMAGE[kind]
    lines: list[str] = []
    with serving(good_answers() | {IMAGES: answer}) as bad, serving(good_answers()) as good:
        data = load_dataset(cache_dir=tmp_path, mirrors=[bad.url, good.url], log=lines.append)
    assert_small_mnist(data)
    assert_cache_complete(tmp_path)
    assert data.source == good.url, "the mirror that worked is asked first for the other files"
    assert bad.asked == [IMAGES]
    assert any(said in line and bad.url in line for line in lines)


@pytest.mark.parametrize("wanted", ["auto", "mnist"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_only_damaged_answers_end_in_an_error(
    kind: str, wanted: str, tmp_path: Path, dead_mirror: str
) -> None:
    answer, said = DAMAGE[kind]
    with serving(all_files(answer)) as bad, pytest.raises(BadDataError) as caught:
        load_dataset(wanted, cache_dir=tmp_path, mirrors=[dead_mirror, bad.url], log=lambda line: None)
    assert caught.value.exit_code == 3
    assert IMAGES in caught.value.message
    assert said in caught.value.message
    assert dead_mirror in caught.value.message
    assert "--data" in (caught.value.hint or "")
    assert list(tmp_path.iterdir()) == [], "nothing of a damaged file stays in the cache"


def test_damage_in_the_last_file_keeps_the_good_ones_only(tmp_path: Path) -> None:
    last = small_files()[-1].name
    with serving(good_answers() | {last: says(500)}) as bad, pytest.raises(BadDataError):
        load_dataset(cache_dir=tmp_path, mirrors=[bad.url], log=lambda line: None)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(file.name for file in small_files()[:-1])
    with serving(good_answers()) as good:
        data = load_dataset(cache_dir=tmp_path, mirrors=[good.url], log=lambda line: None)
    assert good.asked == [last]
    assert data.source == f"cache {tmp_path} and {good.url}"
    assert_cache_complete(tmp_path)


def test_no_mirror_answers_auto_says_synthetic(tmp_path: Path, dead_mirror: str) -> None:
    lines: list[str] = []
    data = load_dataset("auto", cache_dir=tmp_path, mirrors=[dead_mirror, dead_mirror], log=lines.append)
    assert (data.name, data.source) == ("synthetic", "synthetic digits (no network)")
    assert data.train_images.shape == (12_000, 28, 28)
    assert data.test_labels.shape == (2_000,)
    assert any("SYNTHETIC" in line for line in lines)
    assert sum(dead_mirror in line for line in lines) == 2


def test_no_mirror_answers_mnist_is_an_error(tmp_path: Path, dead_mirror: str) -> None:
    with pytest.raises(BadDataError, match="no mirror could be reached") as caught:
        load_dataset("mnist", cache_dir=tmp_path, mirrors=[dead_mirror], log=lambda line: None)
    assert caught.value.exit_code == 3
    assert "refused" in caught.value.message
    assert "--dataset synthetic" in (caught.value.hint or "")


def test_mute_mirror_counts_as_unreachable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist_download, "CONNECT_TIMEOUT_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:  # accepts, as the kernel does, and never answers
        url = f"http://127.0.0.1:{mute.getsockname()[1]}/"
        data = load_dataset("auto", cache_dir=tmp_path, mirrors=[url], log=lambda line: None)
    assert data.name == "synthetic"


def test_redirect_to_http_is_followed(tmp_path: Path) -> None:
    with serving(good_answers()) as good:
        moved = {name: says(301, Location=good.url + name) for name in good_answers()}
        with serving(moved) as first:
            data = load_dataset("mnist", cache_dir=tmp_path, mirrors=[first.url], log=lambda line: None)
    assert_small_mnist(data)


def test_body_of_a_redirect_is_not_read(tmp_path: Path) -> None:
    """Its length is the mirror's to choose: 64 MB here, of which the buffers in between take a part."""
    sent = 0

    def moved_with_a_long_body(handler: BaseHTTPRequestHandler) -> None:
        nonlocal sent
        handler.send_response(302)
        handler.send_header("Location", good.url + IMAGES)
        handler.end_headers()
        for _ in range(64):
            sent += handler.wfile.write(bytes(1_000_000))

    with serving(good_answers()) as good, serving(good_answers() | {IMAGES: moved_with_a_long_body}) as first:
        data = load_dataset("mnist", cache_dir=tmp_path, mirrors=[first.url], log=lambda line: None)
    assert_small_mnist(data)
    assert sent < 32_000_000


def test_damaged_cache_is_replaced(tmp_path: Path) -> None:
    (tmp_path / IMAGES).write_bytes(gzip.compress(small_contents()[0])[:500])
    lines: list[str] = []
    with serving(good_answers()) as mirror:
        assert_small_mnist(load_dataset(cache_dir=tmp_path, mirrors=[mirror.url], log=lines.append))
    assert_cache_complete(tmp_path)
    assert "not used from the cache" in lines[0]
    assert str(tmp_path / IMAGES) in lines[0]


def test_damaged_cache_is_removed_even_without_network(tmp_path: Path, dead_mirror: str) -> None:
    (tmp_path / IMAGES).write_bytes(b"garbage")
    with pytest.raises(BadDataError):
        load_dataset("mnist", cache_dir=tmp_path, mirrors=[dead_mirror], log=lambda line: None)
    assert list(tmp_path.iterdir()) == []


def test_cache_that_cannot_be_written_is_said_and_not_needed(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    lines: list[str] = []
    with serving(good_answers()) as mirror:
        data = load_dataset("mnist", cache_dir=tmp_path / "file", mirrors=[mirror.url], log=lines.append)
    assert_small_mnist(data)
    assert sum("not stored in the cache" in line for line in lines) == 4


@pytest.mark.parametrize(
    "mirror",
    [
        "file:///etc/",
        "ftp://example.org/mnist/",
        "example.org/mnist",
        "https://",
        "https://example.org/mnist?key=1",
        "https://example.org:port/",
        "https://[::1/",
        "https://example.org/a b/",
        "https://example.org/\n",
    ],
)
def test_mirror_that_is_no_plain_address(mirror: str, tmp_path: Path) -> None:
    with pytest.raises(BadRequestError) as caught:
        load_dataset("auto", cache_dir=tmp_path, mirrors=[mirror])
    assert repr(mirror) in caught.value.message


def test_password_in_a_mirror_is_refused_and_not_repeated(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError) as caught:
        load_dataset("auto", cache_dir=tmp_path, mirrors=["https://me:secret@example.org:port/"])
    assert "example.org" in str(caught.value)
    assert "secret" not in str(caught.value)


def test_mirrors_by_argument_then_environment_then_default(monkeypatch: pytest.MonkeyPatch) -> None:
    assert mnist_files.chosen_mirrors() == list(mnist_files.DEFAULT_MIRRORS)
    assert all(mirror.startswith("https://") for mirror in mnist_files.DEFAULT_MIRRORS)
    monkeypatch.setenv("HPCLAUNCH_MNIST_MIRRORS", "https://a.example/x, http://b.example/,")
    assert mnist_files.chosen_mirrors() == ["https://a.example/x/", "http://b.example/"]
    assert mnist_files.chosen_mirrors(["https://c.example"]) == ["https://c.example/"]
    monkeypatch.setenv("HPCLAUNCH_MNIST_MIRRORS", "")
    assert mnist_files.chosen_mirrors() == list(mnist_files.DEFAULT_MIRRORS)


_LOAD = """
import hashlib, json, sys
from pathlib import Path
from hpclaunch.train.collective import AgreedError, on_rank_0_alone
from hpclaunch.train.data import dataset
from hpclaunch.train.run_errors import TrainError
from tests.train.mirror import small_files

dataset.MNIST_FILES = small_files()
comm = None
if sys.argv[3] == "ranks":
    from mpi4py import MPI
    comm = MPI.COMM_WORLD
# Ranks get a cache each: what a rank has, it has from rank 0.
cache = Path(sys.argv[2]) / str(comm.Get_rank()) if comm else Path(sys.argv[2])
def load():
    return dataset.load_dataset(cache_dir=cache, mirrors=[sys.argv[1]])
try:
    data = dataset.broadcast_dataset(on_rank_0_alone(comm, load), comm) if comm else load()
    arrays = (data.train_images, data.train_labels, data.test_images, data.test_labels)
    digest = hashlib.sha256(b"".join(array.tobytes() for array in arrays)).hexdigest()
    outcome = [data.name, data.source, digest]
except (AgreedError, TrainError) as error:
    error = getattr(error, "error", error)
    outcome = [type(error).__name__, error.exit_code, error.message]
outcomes = comm.gather(outcome) if comm else [outcome]
if outcomes:
    print(json.dumps(outcomes))
"""


def _start(launcher: list[str], *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*launcher, sys.executable, "-c", _LOAD, *arguments],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _outcomes(process: subprocess.Popen[str]) -> list[list[object]]:
    out, err = process.communicate()
    assert process.returncode == 0, err
    outcomes: list[list[object]] = json.loads(out)
    return outcomes


def _mpiexec(ranks: int) -> list[str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    program = shutil.which("mpiexec", path=path)
    assert program is not None, "these tests need an MPI"
    return [program, "-n", str(ranks)]


def _small_digest() -> str:
    images, labels, test_images, test_labels = small_contents()
    return hashlib.sha256(images[16:] + labels[8:] + test_images[16:] + test_labels[8:]).hexdigest()


@pytest.mark.slow
def test_processes_at_once_share_a_cache(tmp_path: Path) -> None:
    with serving(good_answers()) as mirror:
        processes = [_start([], mirror.url, str(tmp_path), "alone") for _ in range(4)]
        outcomes = [_outcomes(process)[0] for process in processes]
    assert {outcome[0] for outcome in outcomes} == {"mnist"}
    assert {outcome[2] for outcome in outcomes} == {_small_digest()}
    assert_cache_complete(tmp_path)


@pytest.mark.mpi
def test_one_rank_downloads_and_all_have_the_data(tmp_path: Path) -> None:
    with serving(good_answers()) as mirror:
        outcomes = _outcomes(_start(_mpiexec(2), mirror.url, str(tmp_path), "ranks"))
    assert outcomes == [["mnist", mirror.url, _small_digest()]] * 2
    assert mirror.asked == [file.name for file in small_files()]
    assert_cache_complete(tmp_path / "0")
    assert not (tmp_path / "1").exists()


@pytest.mark.mpi
def test_an_error_on_rank_0_ends_all_ranks_alike(tmp_path: Path) -> None:
    with serving(all_files(says(404))) as mirror:
        outcomes = _outcomes(_start(_mpiexec(2), mirror.url, str(tmp_path), "ranks"))
    assert len(outcomes) == 2
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][:2] == ["BadDataError", 3]
    assert "answered 404" in str(outcomes[0][2])


@pytest.mark.mpi
def test_synthetic_on_all_ranks_without_network(tmp_path: Path, dead_mirror: str) -> None:
    outcomes = _outcomes(_start(_mpiexec(2), dead_mirror, str(tmp_path), "ranks"))
    assert len(outcomes) == 2
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][:2] == ["synthetic", "synthetic digits (no network)"]
