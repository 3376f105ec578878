"""How a script is given to flux batch: once, and an array, a job for each index, as a whole or not at all."""

import re

from hpclaunch.package_data import text_beside

ARRAY = "--setattr=user.hpclaunch.array="
"""Starts the directive with the indices, from which the submission makes the jobs: Flux has no arrays."""


def submission(script: str, *, finish: bool = False) -> tuple[str, ...]:
    """Return the command that submits the script, detached, so that no signal to our session reaches it.

    ``finish``: that finds out about one that was cut off; exit code 75 means that it is not known yet.
    """
    mode = "finish" if finish else "submit"
    text = text_beside(__file__, "flux_submit.sh").replace("ARRAY//p", ARRAY.replace(".", r"\.") + "//p")
    return ("setsid", "--wait", "bash", "-c", text, "hpclaunch-flux", mode, script)


def split_id(text: str) -> dict[int, str]:
    """Return index -> id of a job, of the id of an array; nothing for another id."""
    pairs = (part.partition("_") for part in text.split("."))
    return {int(index): job for job, _, index in pairs if index}


def ids_of(text: str) -> list[str]:
    """Return the ids that Flux knows, of the id of a job or an array."""
    return list(split_id(text).values()) or [text]


def one_of(text: str) -> str:
    """Return the id of one job of an array, where its index follows the array's id; else the text."""
    whole, _, index = text.rpartition("_")
    jobs = split_id(whole)
    return jobs[int(index)] if index.isdigit() and int(index) in jobs else re.sub("_.*", "", text)
