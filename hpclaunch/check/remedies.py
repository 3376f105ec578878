"""Remedies for what is missing, for the site."""

import msgspec

from hpclaunch.site.schema import SiteProfile
from hpclaunch.software.horovod_facts import rebuild_command
from hpclaunch.software.known_pairs import first_cuda

_FRAMEWORKS = {"tensorflow": "tensorflow", "keras": "tensorflow", "pytorch": "pytorch", "mxnet": "mxnet"}
_SHORT = {"pytorch": "torch"}


class Remedies(msgspec.Struct, frozen=True, kw_only=True):
    """Remedies for one site; ``profile`` None: the site is not known."""

    profile: SiteProfile | None = None
    framework: str = "pytorch"

    def rebuild(self, name: str) -> str:
        """Return the line that builds Horovod with a part."""
        if name == "ddl":
            return "nothing: DDL is part of IBM's PowerAI only"
        framework = _FRAMEWORKS.get(name, self.framework)
        command = rebuild_command(self.profile, framework)
        extra = {
            "gloo": "HOROVOD_WITH_GLOO=1 ",
            "ccl": "HOROVOD_CPU_OPERATIONS=CCL ",
            "nccl": "HOROVOD_GPU_OPERATIONS=NCCL ",
            "cuda": "HOROVOD_GPU=CUDA ",
            "rocm": "HOROVOD_GPU=ROCM ",
        }.get(name, "")
        if extra.strip() in command.split():
            extra = ""
        ways = ""
        if framework in ("pytorch", "torch", "tensorflow"):
            why = "" if framework == "tensorflow" else "; torch from 2.1 on needs C++17"
            ways = f"{why}; all ways: {self.plan(framework)}"
        return f"rebuild: {extra}{command}{ways}"

    def plan(self, framework: str) -> str:
        """Return the command that shows all ways to install Horovod for a framework."""
        site = self.profile.name if self.profile else "local"
        return f"hpclaunch software plan --site {site} --for horovod-{_SHORT.get(framework, framework)}"

    def right_mpi(self, name: str) -> str:
        """Return how to bring the library and its MPI together."""
        implementation = self.profile.mpi.implementation if self.profile else None
        with_it = f" with {implementation}" if implementation else ""
        return f"load the MPI that Horovod was built with, or {self.rebuild(name)}{with_it}"

    def arch(self, arch: str) -> str:
        """Return what a build for an architecture needs."""
        first = first_cuda(arch)
        if first:
            return f"use a framework built with CUDA {first} or newer for {arch}"
        return f"use a framework built for {arch}"

    def features(self) -> frozenset[str]:
        """Return what the site is: its fabric's kind and its GPU's architecture."""
        if self.profile is None:
            return frozenset()
        node = self.profile.node
        words = {self.profile.fabric.kind, node.gpu_arch if node else None}
        return frozenset(word for word in words if word)

    def gpu_arch(self) -> str | None:
        """Return the architecture of the site's GPUs; None where it has none or is not known."""
        node = self.profile.node if self.profile else None
        return node.gpu_arch if node and node.gpus else None

    def variables(self) -> dict[str, str]:
        """Return the variables that the site's profile sets in every job."""
        if self.profile is None:
            return {}
        merged = {**self.profile.fabric.common, **self.profile.env}
        return {name: each.value for name, each in merged.items() if each.value is not None}
