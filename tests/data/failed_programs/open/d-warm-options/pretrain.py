"""usage: pretrain.py [-l RATE] [--steps N] [--warmup-steps N]"""
import getopt
import os
import sys

from plan import Plan


def parse(argv):
    plan = Plan()
    opts, rest = getopt.gnu_getopt(argv, "l:h", ["steps=", "warmup-steps=", "help"])
    for key, val in opts:
        if key == "-l":
            plan.rate = float(val)
        elif key == "--steps":
            plan.steps = int(val)
        elif key == "--warmup-steps":
            plan.warmup = int(val)
        else:
            print(__doc__)
            sys.exit(0)
    if rest:
        raise getopt.GetoptError(f"unexpected argument {rest[0]}")
    return plan


def main():
    try:
        plan = parse(sys.argv[1:])
    except getopt.GetoptError as err:
        print(f"pretrain.py: {err}", file=sys.stderr)
        print(__doc__, file=sys.stderr)
        return 64
    rank = int(os.environ["RANK"])
    for step in range(plan.steps):
        if step % 10 == 0 and rank == 0:
            print(step, plan.at(step))
    return 0


if __name__ == "__main__":
    sys.exit(main())
