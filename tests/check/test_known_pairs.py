"""Versions that do not go together."""

from __future__ import annotations

from hpclaunch.check.check_report import Check
from hpclaunch.check.facts import BuildFacts, Outcome
from hpclaunch.check.judge_build import Remedies, judge_versions
from hpclaunch.remote.probe import MARK
from hpclaunch.site.load_profile import load_site
from hpclaunch.software.known_pairs import Range, bad_pairs, known_pairs
from tests.in_one_test import in_one_test

NONE: frozenset[str] = frozenset()


def test_ranges_compare_numbers_not_text() -> None:
    assert Range(at_least=(2, 13)).holds("2.13.0+cpu")
    assert not Range(at_least=(2, 13)).holds("2.9.1")
    assert Range(below=(0, 29)).holds("0.28.1")
    assert not Range(below=(5,)).holds("5.0.11")
    assert not Range(below=(5,)).holds("unknown")


@in_one_test(
    "versions, word",
    [
        ({"horovod": "0.28.1", "keras": "3.3.3"}, "Keras 3"),
        ({"horovod": "0.28.1", "tensorflow": "2.16.1"}, "TensorFlow up to 2.12"),
        ({"mpi-linked": "4", "mpi-runtime": "5.0.11"}, "Open MPI 5"),
    ],
)
def test_bad_pairs_are_found(versions: dict[str, str], word: str) -> None:
    (pair,) = bad_pairs(versions, NONE, {})
    assert word in pair.what


def test_good_ones_are_not() -> None:
    good = {"horovod": "0.28.1", "tensorflow": "2.12.0", "keras": "2.12.0", "nccl": "2.27.5"}
    assert bad_pairs(good, NONE, {}) == ()
    assert bad_pairs({"horovod": "0.29.0", "keras": "3.0.0"}, NONE, {}) == ()


def test_ll128_is_wrong_on_grace_hopper_with_slingshot_only_and_has_a_cure() -> None:
    olivia = Remedies(profile=load_site("olivia"))
    features = olivia.features()
    assert features == {"slingshot-11", "sm_90"}
    assert len(bad_pairs({"nccl": "2.27.5"}, features, {})) == 1
    assert bad_pairs({"nccl": "2.26.6"}, features, {}) == ()
    assert bad_pairs({"nccl": "2.27.5"}, Remedies(profile=load_site("polaris")).features(), {}) == ()
    assert olivia.variables()["NCCL_PROTO"] == "^LL128"
    assert bad_pairs({"nccl": "2.27.5"}, features, olivia.variables()) == ()


def test_every_pair_names_its_source() -> None:
    assert all(pair.source.startswith("https://") and pair.remedy for pair in known_pairs())


def torch_built_for(cuda: str, archs: str) -> dict[str, Check]:
    answer = f'"versions": {{"framework": "2.3.0", "cuda": "{cuda}", "archs": {archs}}}'
    said = f'{MARK}{{"imported": true, "init": true, {answer}}}'
    facts = BuildFacts(frameworks={"pytorch": Outcome(exit_code=0, stdout=said)})
    return {check.name: check for check in judge_versions(facts, Remedies(profile=load_site("daint")))}


def test_a_cuda_that_is_older_than_the_gpu() -> None:
    found = torch_built_for("11.7", '["sm_80"]')["gpu-arch"]
    assert found.status == "missing"
    assert "CUDA 11.7, which does not support sm_90 (first: 11.8)" in found.evidence
    assert torch_built_for("12.4", '["sm_80", "sm_86"]')["gpu-arch"].status == "missing"
    assert torch_built_for("12.4", '["sm_80", "sm_90"]')["gpu-arch"].status == "have"
    assert torch_built_for("12.4", "null")["gpu-arch"].status == "unknown"
