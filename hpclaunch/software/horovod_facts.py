"""Facts about Horovod: limits of its releases, and the variables that select what is built in.

Names and meanings: Horovod 0.28.1, docs/install.rst and CMakeLists.txt.
"""

import shlex

from hpclaunch.package_data import package_table
from hpclaunch.site.schema import SiteProfile

VERSION = "0.28.1"
"""The newest release (June 2023); it is published as source only."""
FRAMEWORKS = ("tensorflow", "pytorch", "mxnet")
CXX17_FROM_TORCH = (2, 1)
"""From this version on torch's headers need C++17; the release sets C++14 (horovod PR 3998, unreleased)."""
TESTED_TENSORFLOW = (2, 12)
"""The newest TensorFlow that 0.28 was tested with (Horovod's CI matrix)."""


def build_variables(profile: SiteProfile | None, framework: str) -> dict[str, str]:
    """Return the HOROVOD_* variables that build Horovod for one framework on this site's nodes.

    Values may have shell variables in them ($ROCM_PATH). Without GPUs, or without a site, it is built with
    MPI and Gloo.
    """
    verbs = {each: "WITH" if each == framework else "WITHOUT" for each in FRAMEWORKS}
    frameworks = {f"HOROVOD_{verb}_{each.upper()}": "1" for each, verb in verbs.items()}
    return {"HOROVOD_WITH_MPI": "1", **_device_variables(profile), **frameworks}


def _device_variables(profile: SiteProfile | None) -> dict[str, str]:
    node = profile.node if profile else None
    if node is None or not node.gpus:
        return {"HOROVOD_WITH_GLOO": "1"}
    by_vendor: dict[str, dict[str, str]] = package_table("software/install_recipes.yaml")["horovod_variables"]
    variables = by_vendor.get(node.gpu_vendor or "", {"HOROVOD_WITH_GLOO": "1"})
    if node.gpu_vendor == "nvidia" and node.gpu_arch and node.gpu_arch.startswith("sm_"):
        return {**variables, "HOROVOD_BUILD_CUDA_CC_LIST": node.gpu_arch.removeprefix("sm_")}
    return variables


def rebuild_command(profile: SiteProfile | None, framework: str) -> str:
    """Return the line that builds Horovod again for a framework, in the environment of the job."""
    variables = build_variables(profile, framework).items()
    assignments = " ".join(
        f"{k}=" + (f'"{v}"' if v.startswith("$") else shlex.quote(v)) for k, v in variables
    )
    options = "--no-build-isolation --no-cache-dir --force-reinstall --no-deps"
    return f"{assignments} pip install {options} horovod=={VERSION}"
