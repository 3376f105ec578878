"""A machine with NVIDIA GPUs that are not there: this machine's /sys and two devices more, for tests."""

from __future__ import annotations

from pathlib import Path

from hpclaunch.topology.sysfs import copy_tree

FAKES = Path(__file__).parents[1] / "fakes" / "fake_nvidia"
BUSES = ("0000:17:00.0", "0000:37:00.0")
"""As the fake nvidia-smi has them, which writes the domain with eight digits."""


def with_gpus(root: Path, buses: tuple[str, ...] = BUSES) -> None:
    """Write a tree for HPCLAUNCH_SYSROOT: /sys as here with GPUs added, and /proc as it is at any time."""
    files = {name: text for name, text in copy_tree(Path("/")).texts.items() if name.startswith("sys/")}
    for number, bus in enumerate(buses):
        device = f"sys/bus/pci/devices/{bus}"
        files |= {
            f"{device}/class": "0x030200\n",
            f"{device}/vendor": "0x10de\n",
            f"{device}/numa_node": "0\n",
        }
        files[f"{device}/device"] = "0x2330\n"
        files[f"proc/driver/nvidia/gpus/{bus}/information"] = (
            "Model: \t\t NVIDIA H100 80GB HBM3\n"
            f"GPU UUID: \t GPU-abcd000{number}-1111-2222-3333-444444444444\n"
        )
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    for name in ("self", "sys"):
        (root / "proc" / name).symlink_to(f"/proc/{name}")
