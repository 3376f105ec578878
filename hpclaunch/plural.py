"""Numbers with their nouns, for people."""


def counted(number: int, noun: str, plural: str | None = None, spec: str = "") -> str:
    """Return ``1 node`` or ``2 nodes``.

    ``plural``: where an s is not enough; ``spec``: how the number is written, such as ``,``.
    """
    return f"{number:{spec}} {noun if number == 1 else plural or f'{noun}s'}"
