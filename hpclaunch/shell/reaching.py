"""Which assignments of a variable may hold where it is used: an ``if`` or a loop leaves several."""

from collections.abc import Sequence

from hpclaunch.shell.shell_syntax import Assignment, Block, Path

_ONE_OF = ("if", "case", "&&")
_LOOPS = ("for", "while", "until", "select")
_MAYBE = (*_ONE_OF, *_LOOPS, "function")


def reaching(made: Sequence[Assignment], offset: int, path: Path) -> list[Assignment | None]:
    """Return the assignments that may hold at a place, in their order; None: what was there before them all.

    ``made``: those of one variable, in the order of the text; ``path``: the blocks around the place.
    """
    live: list[Assignment | None] = [None]
    covered: dict[Block, set[int]] = {}
    for one in made:
        if not _may_reach(one, offset, path):
            continue
        maybe = [step for step in one.path if step not in path and step[1] and step[0].kind in _MAYBE]
        if one.offset >= offset:
            live.append(one)
        elif not maybe:
            live = [one]
        elif len(maybe) > 1:
            live.append(one)
        else:
            block, branch = maybe[0]
            live = [*(each for each in live if each is None or maybe[0] not in each.path), one]
            covered.setdefault(block, set()).add(branch)
            if block.covered_by(covered[block]):
                live = [each for each in live if each and any(step[0] is block for step in each.path)]
    return live


def in_loop(one: Assignment) -> bool:
    """Tell whether an assignment may be made several times."""
    return any(block.kind in _LOOPS for block, _ in one.path)


def _may_reach(one: Assignment, offset: int, path: Path) -> bool:
    """Tell whether a place may see an assignment: not from a subshell, another branch, or behind ``exit``."""
    own = [step for step in one.path if step not in path]
    if any(block.kind == "(" or branch in block.left_by for block, branch in own):
        return False
    shared = {block for block, _ in path}
    again = any(step[0].kind in _LOOPS for step in one.path if step in path)
    if again:
        return True
    if any(block in shared and branch and block.kind in _ONE_OF for block, branch in own):
        return not dict(path)[next(block for block, _ in own if block in shared)]  # in its condition
    around = [block for block, _ in path if block.kind == "function"]
    return one.offset < offset or any(block not in dict(one.path) for block in around)
