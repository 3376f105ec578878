import resource


def limit_memory(extra_gib):
    """Allow what we have now plus extra_gib, so that one job cannot push the node into swap."""
    with open("/proc/self/statm") as f:
        now = int(f.read().split()[0]) * resource.getpagesize()
    top = now + extra_gib * 2 ** 30
    resource.setrlimit(resource.RLIMIT_AS, (top, top))
