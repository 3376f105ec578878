"""PCI classes and vendors of compute GPUs, and the display chips of servers that are none."""

from collections.abc import Mapping, Sequence

GPU_CLASSES = frozenset({"0300", "0302", "0380", "1200"})
"""PCI classes (pci.ids): VGA, 3D, other display, processing accelerator."""

VENDORS = {"10de": "NVIDIA", "1002": "AMD", "8086": "Intel"}
"""Vendors of compute GPUs by PCI number, the one to prefer first."""

_SERVER_DISPLAYS = frozenset(("1002", chip) for chip in ("4752", "5159", "515e", "5969"))
"""ATI Rage XL, RV100 and ES1000 (two numbers): displays on the main boards of servers. Those of ASPEED and
Matrox have other vendors, which VENDORS does not list."""


def gpu_vendor(device_class: str, vendor: str, device: str) -> str | None:
    """Return the name of a compute GPU's vendor, None for any other device; numbers as in pci.ids, no 0x."""
    if device_class not in GPU_CLASSES or (vendor, device) in _SERVER_DISPLAYS:
        return None
    return VENDORS.get(vendor)


def note_of_others(source: str, gpus: Mapping[str, Sequence[object]], used: str) -> str | None:
    """Return the note about GPUs of further vendors; None where there are none.

    A job uses the GPUs of one vendor: the runtimes of two number theirs independently.
    """
    others = [f"{len(found)} of {vendor}" for vendor, found in gpus.items() if found and vendor != used]
    if not others:
        return None
    counts = ", ".join(others)
    return f"{source}: in addition to the GPUs of {used} there are {counts}; they are not counted"
