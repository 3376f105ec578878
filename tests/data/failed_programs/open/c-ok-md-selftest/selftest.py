import os
import subprocess
import sys

CASES = {
    "segv": "import faulthandler, ctypes; faulthandler.enable(); ctypes.string_at(0)",
    "abrt": "import faulthandler, os; faulthandler.enable(); os.abort()",
    "assert": "energy = float('nan')\nassert energy == energy, 'energy is NaN, simulation exploded'",
}


def run():
    """the children must die, and we must be able to say how"""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMPI_", "PMIX_", "PRTE_", "SLURM_"))}
    for name, code in CASES.items():
        p = subprocess.run([sys.executable, "-c", code], env=env)
        yield f"self-test {name}: child ended with {p.returncode} ... as it should"
