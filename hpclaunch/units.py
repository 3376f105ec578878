"""Amounts as people read them."""


def format_bytes(count: float) -> str:
    """Write a number of bytes, such as ``1.5 GiB``."""
    for unit, size in (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if abs(count) >= size:
            return f"{count / size:{'.3g' if abs(count) < 999.5 * size else ',.0f'}} {unit}"
    return f"{count:.0f} bytes"


def rounded(value: float | None, digits: int = 3) -> float | None:
    """Round what is known."""
    return None if value is None else round(value, digits)
