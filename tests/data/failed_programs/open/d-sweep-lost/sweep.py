"""Random search: every worker scores its trials, worker 0 picks the best."""
import json
import os
import random
import time
from pathlib import Path

from worker import run_trials

HERE = Path(__file__).resolve().parent
RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
RUN = os.environ.get("SLURM_JOB_ID") or os.environ.get("MASTER_PORT", "0")
BOARD = HERE / "board" / RUN
BEGAN = time.time()


def fresh(path):
    """A result of this run, not a leftover of the last one."""
    try:
        return path.stat().st_mtime > BEGAN - 20
    except FileNotFoundError:
        return False


def collect(patience=14.0):
    end = time.time() + patience
    wanted = {r: BOARD / f"scores-{r}.json" for r in range(WORLD)}
    got = {}
    while wanted and time.time() < end:
        for r in [r for r, p in wanted.items() if fresh(p)]:
            got[r] = json.loads(wanted.pop(r).read_text())
            print(f"[coordinator] {len(got[r])} scores from worker {r}", flush=True)
        time.sleep(0.2)
    if wanted:
        who = ", ".join(str(r) for r in sorted(wanted))
        raise RuntimeError(f"sweep incomplete: no scores from worker {who} after {patience:.0f} s")
    return got


def main():
    BOARD.mkdir(parents=True, exist_ok=True)
    rng = random.Random(1000 + RANK)
    trials = [{"lr": 10 ** rng.uniform(-4, -1), "depth": rng.randint(2, 6)} for _ in range(5)]
    if RANK == 1:
        trials[3].pop("depth")      # the space of worker 1 was edited by hand
    print(f"[worker {RANK}] {len(trials)} trials", flush=True)
    scores = run_trials(RANK, trials, HERE / "logs")
    if scores:
        tmp = BOARD / f"scores-{RANK}.tmp"
        tmp.write_text(json.dumps(scores))
        tmp.rename(BOARD / f"scores-{RANK}.json")
        print(f"[worker {RANK}] best {max(scores):.4f}", flush=True)
    if RANK == 0:
        got = collect()
        print("[coordinator] best overall", max(max(s) for s in got.values()))


if __name__ == "__main__":
    main()
