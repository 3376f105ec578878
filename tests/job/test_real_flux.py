"""The jobs of test_run_fake_flux.py on a real Flux, and what the fake does not show.

HPCLAUNCH_TEST_FLUX is the folder that tests/testbed/flux.sh prints.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.job import test_run_fake_flux as on_fake
from tests.job.test_run_fake_flux import FLUX, HOST, run
from tests.own_process import hpclaunch

pytestmark = [pytest.mark.slow, pytest.mark.long]

PREFIX = Path(os.environ["HPCLAUNCH_TEST_FLUX"])

test_a_failed_job_and_a_refused_one = on_fake.test_a_failed_job_and_a_refused_one
test_last_words = on_fake.test_the_last_words_of_a_failing_rank_arrive_and_the_others_are_ended
test_own_cores = on_fake.test_each_rank_has_its_own_cores
test_after = on_fake.test_a_job_after_another
test_restarts = on_fake.test_a_job_comes_back_after_a_checkpoint_and_writes_on_in_its_log
test_array = on_fake.test_an_array_is_a_job_for_each_index
test_array_cancelled = on_fake.test_an_array_is_cancelled
test_array_killed = on_fake.test_an_array_whose_submission_is_killed_is_there_as_a_whole_or_not_at_all
test_attach = on_fake.test_a_running_job_is_looked_into


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a Flux of one broker, and return its address."""
    address = tmp_path_factory.mktemp("flux") / "uri"
    script = 'echo "$FLUX_URI" > "$1.new" && mv "$1.new" "$1"; exec cat'
    words = [str(PREFIX / "bin" / "flux"), "start", "--test-size=1", "sh", "-c", script, "sh", str(address)]
    with subprocess.Popen(words, stdin=subprocess.PIPE) as server:
        until = time.monotonic() + 60
        while not address.exists():
            assert server.poll() is None
            assert time.monotonic() < until
            time.sleep(0.1)
        yield address.read_text().strip()
        subprocess.run(
            [words[0], "cancel", "--all"], env={**os.environ, "FLUX_URI": address.read_text().strip()}
        )
        assert server.stdin
        server.stdin.close()  # ends cat, and so the instance


@pytest.fixture(autouse=True)
def real(instance: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put the real Flux on PATH and name the instance."""
    monkeypatch.setenv("PATH", f"{PREFIX / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("FLUX_URI", instance)


def test_walltime() -> None:
    answer, document = run("--time", "1m", "--", "sleep", "200")
    assert (answer.returncode, document["state"]) == (1, "failed")
    assert "it reached its walltime" in answer.stderr


def test_what_can_never_start() -> None:
    answer, document = run("--nodes", "9", "--", "true")
    assert (answer.returncode, document["state"]) == (1, "failed")
    assert "unsatisfiable request: need 9 exclusive node(s)" in answer.stderr
    failed = hpclaunch("status", "last", "--json")
    assert failed.returncode == 0


def test_its_nodes_are_read() -> None:
    """Its resource set and configuration are in the form that is known, whatever this machine has."""
    facts = FLUX.parse_facts(
        {name: HOST.run(argv, timeout_s=60) for name, argv in FLUX.facts_commands.items()}
    )
    (only,) = facts.nodes
    assert (only.nodes, only.in_service, facts.has_queues) == (1, 1, False)
    assert only.cores
    assert only.example == os.uname().nodename.partition(".")[0]
    assert facts.version
