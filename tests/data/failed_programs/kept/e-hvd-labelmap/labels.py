class UnknownLabel(LookupError):
    """An annotation that the label map does not know."""


LABELS = {"cat": 0, "dog": 1, "horse": 2}


def encode(names):
    try:
        return [LABELS[n] for n in names]
    except KeyError as e:
        raise UnknownLabel(f"label {e} of batch {names} is not in the label map") from e


def batches(rank):
    pets = ["cat", "dog", "horse", "dog"]
    for i in range(12):
        b = [pets[(i + j + rank) % 4] for j in range(4)]
        if rank == 1 and i == 5:
            b[2] = "zebra"
        yield b
