def rows_of(rank, size, n):
    base, rest = divmod(n, size)
    lo = rank * base + min(rank, rest)
    return lo, lo + base + (1 if rank < rest else 0)
