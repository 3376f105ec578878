"""Names of easyconfigs and modules, both ways."""

from __future__ import annotations

import pytest

from hpclaunch.errors import BadInputError
from hpclaunch.software.easyconfig import cuda_in, module_of, parse_easyconfig, recipes
from hpclaunch.software.known_pairs import cuda_addresses, first_cuda, version_numbers
from tests.in_one_test import in_one_test


@in_one_test(
    "file, module, toolchain, cuda",
    [
        (
            "Horovod-0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0.eb",
            "Horovod/0.28.1-foss-2022a-CUDA-11.7.0-TensorFlow-2.11.0",
            ("foss", "2022a"),
            "11.7.0",
        ),
        (
            "Horovod-0.28.1-foss-2022a-PyTorch-1.12.0.eb",
            "Horovod/0.28.1-foss-2022a-PyTorch-1.12.0",
            ("foss", "2022a"),
            None,
        ),
        (
            "Horovod-0.21.1-fosscuda-2020b-TensorFlow-2.4.1.eb",
            "Horovod/0.21.1-fosscuda-2020b-TensorFlow-2.4.1",
            ("fosscuda", "2020b"),
            "11.1.1",
        ),
        (
            "Horovod-0.21.0-CrayGNU-21.09-tf-2.4.0.eb",
            "Horovod/0.21.0-CrayGNU-21.09-tf-2.4.0",
            ("CrayGNU", "21.09"),
            None,
        ),
        (
            "PyTorch-bundle-2.1.2-foss-2023a.eb",
            "PyTorch-bundle/2.1.2-foss-2023a",
            ("foss", "2023a"),
            None,
        ),
        ("zlib-1.2.12.eb", "zlib/1.2.12", (None, None), None),
        (
            "NCCL-2.30.4-GCCcore-14.3.0-CUDA-13.0.0.eb",
            "NCCL/2.30.4-GCCcore-14.3.0-CUDA-13.0.0",
            ("GCCcore", "14.3.0"),
            "13.0.0",
        ),
    ],
)
def test_both_ways(
    file: str, module: str, toolchain: tuple[str | None, str | None], cuda: str | None
) -> None:
    parsed = parse_easyconfig(file)
    assert (parsed.module, parsed.cuda) == (module, cuda)
    assert (parsed.toolchain, parsed.toolchain_version) == toolchain
    assert parse_easyconfig(module) == parsed
    assert parse_easyconfig(f"/some/folder/{file}") == parsed
    assert module_of(file) == module_of(module) == module


@in_one_test("text", ["", "Horovod", "Horovod-latest", "-1.0", "0.28.1"])
def test_other_names_are_refused(text: str) -> None:
    with pytest.raises(BadInputError, match="not the name of an easyconfig"):
        parse_easyconfig(text)


@in_one_test(
    "text, cuda",
    [
        ("cuda/12.1", "12.1"),
        ("CUDA/13.0.0", "13.0.0"),
        ("cudatoolkit/23.3_12.0", "12.0"),
        ("Horovod/0.28.1-foss-2022a-CUDA-11.7.0-PyTorch-1.13.1", "11.7.0"),
        ("UCX-CUDA/1.12.1-GCCcore-11.3.0-CUDA-11.7.0", "11.7.0"),
        ("rocm/6.2.2", None),
        ("cudnn/8.9", None),
    ],
)
def test_cuda_of_a_name(text: str, cuda: str | None) -> None:
    assert cuda_in(text) == cuda


def test_which_cuda_addresses_which_gpu() -> None:
    assert [cuda_addresses(cuda, "sm_90") for cuda in ("11.7.0", "11.8", "12.1")] == [False, True, True]
    assert cuda_addresses("11.7.0", "sm_80")
    assert cuda_addresses("9.2", "sm_80") is False
    assert (cuda_addresses("12.0", "gfx90a"), cuda_addresses("", "sm_90")) == (None, None)
    assert first_cuda("sm_90") == "11.8"
    assert version_numbers("2.13.0+cpu") == (2, 13, 0)


@in_one_test("goal", recipes())
def test_every_known_recipe_can_be_read(goal: str) -> None:
    names = {"torch": "PyTorch", "horovod-torch": "Horovod", "horovod-tensorflow": "Horovod"}
    for recipe in recipes()[goal]:
        parsed = parse_easyconfig(recipe.file)
        assert parsed.name == names.get(goal, goal)
        assert (parsed.toolchain or "") in ("foss", "gfbf", "gompi")
        if goal.startswith("horovod"):
            assert {"horovod-tensorflow": "-TensorFlow-", "horovod-torch": "-PyTorch-"}[goal] in parsed.suffix
