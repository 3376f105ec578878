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
    for one in (one for one in made if _may_reach(one, offset, path)):
        maybe = _maybe(one, path)
        if one.offset >= offset or len(maybe) > 1:
            live.append(one)
        elif not maybe:
            live = [one]
        else:
            live = _behind(live, one, maybe[0], covered)
    return live


def _maybe(one: Assignment, path: Path) -> list[tuple[Block, int]]:
    """Return the branches around an assignment, and not around the place, that may not run."""
    own = [step for step in one.path if step not in path]
    return [(block, branch) for block, branch in own if branch and block.kind in _MAYBE]


def _behind(
    live: list[Assignment | None], one: Assignment, step: tuple[Block, int], covered: dict[Block, set[int]]
) -> list[Assignment | None]:
    """Return what may hold behind an assignment in one branch, given what may hold before it."""
    block, branch = step
    live = [*(each for each in live if each is None or step not in each.path), one]
    covered.setdefault(block, set()).add(branch)
    if block.covered_by(covered[block]):
        live = [each for each in live if each and block in dict(each.path)]
    return live


def in_loop(one: Assignment) -> bool:
    """Tell whether an assignment may be made several times."""
    return any(block.kind in _LOOPS for block, _ in one.path)


def _may_reach(one: Assignment, offset: int, path: Path) -> bool:
    """Tell whether a place may see an assignment: not from a subshell, another branch, or behind ``exit``."""
    if any(block.kind in _LOOPS for block, _ in set(one.path) & set(path)):
        return True
    own, here = [step for step in one.path if step not in path], dict(path)
    functions = {block for block in here if block.kind == "function"}
    before = one.offset < offset or bool(functions - dict(one.path).keys())
    return before and not any(_is_cut_off(block, branch, here) for block, branch in own)


def _is_cut_off(block: Block, branch: int, here: dict[Block, int]) -> bool:
    """Tell whether nothing leads from a branch to a place: a subshell, ``exit``, another branch."""
    elsewhere = bool(branch and here.get(block)) and block.kind in _ONE_OF
    return block.kind == "(" or branch in block.left_by or elsewhere
