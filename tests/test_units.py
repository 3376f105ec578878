"""Amounts as people read them."""

from hpclaunch.amounts import format_bytes


def test_no_amount_of_bytes_has_an_exponent() -> None:
    """Three digits, and all of them where a number below the next unit, or above the largest, has four."""
    for count, text in (
        (1023, "1023 bytes"),
        (1 << 10, "1 KiB"),
        (1536 << 20, "1.5 GiB"),
        (999 << 20, "999 MiB"),
        (1000 << 20, "1,000 MiB"),
        ((1 << 30) - 1, "1,024 MiB"),
        (-(1010 << 30), "-1,010 GiB"),
        (5120 << 40, "5,120 TiB"),
    ):
        assert format_bytes(count) == text
