"""Slurm's codes for why a job waits or how it failed, as sentences with a remedy where there is one.

Sources: the sections JOB REASON CODES and JOB STATE CODES of man squeue and sacct (22.05 to 24.11) and
slurm.schedmd.com/job_reason_codes.html.
"""

PENDING: dict[str, str] = {
    "Priority": "jobs of higher priority come first; no action is needed",
    "Resources": "the nodes it requests are busy; no action is needed",
    "BeginTime": "its earliest start time has not come",
    "Dependency": "it waits for another job to end",
    "DependencyNeverSatisfied": "the job it depends on ended otherwise than it asks, so it can "
    "never start: cancel it",
    "JobHeldUser": "it is held by its owner: scontrol release ID lets it go",
    "JobHeldAdmin": "it is held by the site's staff: ask them",
    "PartitionNodeLimit": "it requests more nodes than the partition gives: cancel it and ask for "
    "fewer (--nodes)",
    "PartitionTimeLimit": "it requests more time than the partition gives: cancel it and ask for "
    "less (--time)",
    "PartitionConfig": "the partition's limits do not allow what it requests: cancel it, ask for "
    "less or elsewhere",
    "PartitionDown": "the partition is down: wait for the site, or take another",
    "PartitionInactive": "the partition takes no jobs now: wait for the site, or take another",
    "ReqNodeNotAvail": "nodes it needs are down, drained or reserved (maintenance ahead?): sinfo -R "
    "gives the reason; "
    "a shorter --time may fit before a reservation",
    "NodeDown": "a node it needs is down: wait, or leave out that node",
    "BadConstraints": "no node is what it requests (constraint, GPUs or memory): cancel it and request less",
    "InvalidAccount": "the account is not valid: cancel it and give --account one of your projects",
    "InvalidQOS": "the QOS is not valid for this account: cancel it and name another",
    "QOSNotAllowed": "the account or partition may not use this QOS: cancel it and name another",
    "AccountNotAllowed": "the account may not use this partition: cancel it and take another of either",
    "Reservation": "its reservation has not begun",
    "ReservationDeleted": "its reservation is gone: cancel it and submit without",
    "Licenses": "the licenses it asks for are in use (on Cray systems also file systems)",
    "Prolog": "the node is being made ready",
    "Cleaning": "it is being requeued and its last attempt is cleaned up",
    "NonZeroExitCode": "its last attempt failed and it is held after a requeue",
    "JobArrayTaskLimit": "as many tasks of its array run as may run at once",
    "launch failed requeued held": "the node could not start it and it is held: scontrol release ID "
    "tries again; "
    "tell the site if it comes back",
    "job requeued in held state": "it was requeued and is held: scontrol release ID lets it go",
    "MaxMemPerLimit": "it requests more memory per node or CPU than is allowed: request less",
    "QOSMaxNodePerUserLimit": "your running jobs use as many nodes as the QOS gives one user: it "
    "starts when they end",
    "QOSMaxJobsPerUserLimit": "as many of your jobs run as the QOS gives one user: it starts when one ends",
    "QOSMaxWallDurationPerJobLimit": "it requests more time than the QOS gives: cancel it and ask "
    "for less (--time)",
    "AssocMaxWallDurationPerJobLimit": "it requests more time than the project may: cancel it and "
    "request less (--time)",
    "AssocMaxJobsLimit": "as many of the project's jobs run as may: it starts when one ends",
    "MaxSubmitJobLimit": "as many jobs are submitted as may be: it starts when others end",
}
"""Reason -> sentence, for jobs that wait."""

# Limits come as {Assoc,QOS}{Grp,Max}{what}{Limit,Minutes,...}: these parts name the remaining ones.
PENDING_PARTS: tuple[tuple[str, str], ...] = (
    ("BillingMinutes", "the project's hours are used up: ask the site for more, or give another --account"),
    ("BillingRunMinutes", "the project's running jobs have booked all its hours: it starts when some end"),
    ("CPUMinutes", "the project's CPU hours are used up: ask the site for more, or give another --account"),
    ("GRESMinutes", "the project's GPU hours are used up: ask the site for more, or give another --account"),
    ("RunMinutes", "the running jobs have booked all that is allowed: it starts when some end"),
    ("Minutes", "the allowed hours are used up: ask the site for more, or give another --account"),
    ("MaxJobs", "as many jobs run as may at once: it starts when one ends"),
    ("GrpJobs", "as many jobs of the group run as may at once: it starts when one ends"),
    ("Submit", "as many jobs are submitted as may be: it starts when others end"),
    ("WallDuration", "it requests more time than is allowed: cancel it and request less (--time)"),
    ("GrpWall", "the group's wall time is used up: ask the site"),
    ("PerJob", "it requests more than one job may: cancel it and request less"),
    ("Max", "a limit on what may be used at once is reached: it starts when other jobs end"),
    ("Grp", "the group uses as much as it may at once: it starts when other jobs end"),
)
"""Part of a reason -> sentence; the first that fits."""

ENDED: dict[str, str] = {
    "TIMEOUT": "it reached its time limit: request more (--time), or save checkpoints and continue",
    "OUT_OF_MEMORY": "it used more memory than it was given: fewer ranks per node, a smaller "
    "batch, or more memory",
    "NODE_FAIL": "one of its nodes failed: submit it again; tell the site if it comes back",
    "PREEMPTED": "it had to make room for another job: submit it again, or take a queue without preemption",
    "BOOT_FAIL": "its nodes could not be booted: submit it again; tell the site if it comes back",
    "DEADLINE": "its deadline passed before it could end",
    "LAUNCH_FAILED": "the node could not start it: submit it again; tell the site if it comes back",
    "RECONFIG_FAIL": "its node could not be set up as requested: tell the site",
}
"""State -> sentence, for jobs that failed."""


def pending_sentence(reason: str) -> str | None:
    """Return ``Reason: sentence`` for a waiting job; an unknown reason comes back as it is, none as None."""
    reason = reason.strip().strip("()")
    if reason in ("", "None", "(null)", "null"):
        return None
    key = reason.split(",")[0].split("(")[0].strip()
    sentence = PENDING.get(key)
    if sentence is None and key.startswith(("Assoc", "QOS")):
        sentence = next((words for part, words in PENDING_PARTS if part in key), None)
    return f"{reason}: {sentence}" if sentence else reason
