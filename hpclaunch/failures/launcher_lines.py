"""Lines that launchers and schedulers write into a job's log, and no program of the job."""

import re

from hpclaunch.failures.known_errors import log_words

# slurmstepd names itself up to 24.11, and from 25.05 on its time only, as the programs of others do: of those
# lines its own are known by their words (src/slurmd/slurmstepd/req.c, src/common/log.c). From 23.11 on a site
# may have the newer form, too (LogTimeFormat=format_stderr in slurm.conf).
SLURM_ENDS = (
    r"^(slurmstepd[^ ]*:|\[[^]]*[0-9]\]) error: \*\*\* ((HET)?JOB|STEP) [^ ]+ ON [^ ]+ .*\*\*\*$"
    r"|^(slurmstepd[^ ]*:|\[[^]]*[0-9]\]) error: \*\*\* REASON: .*\*\*\*$"
)
"""A line in which Slurm says that it ends a job or a step, as a POSIX extended regular expression."""
SLURM_SAYS = (
    rf"^(srun|slurmstepd[^ ]*): |{SLURM_ENDS}"
    r"|^\[[^]]*[0-9]\] (error|fatal): (Detected [0-9]+ oom[_-]kill event"
    r"|(mpi|task|gres|cgroup|auth|cred|switch|proctrack|job_container)/[a-z0-9_]+: "
    r"|couldn't chdir to |Could not open std|execve\(\): )"
)
"""A line of Slurm's own programs, likewise."""
SAYS_RANK = "rank[ :=]*[0-9]+ *(of|/|out of|,? *(world[ _])?size[ :=]*) *[0-9]+"
"""A line with a rank and its size, likewise, in any case; the words before it decide whether it counts."""


def launchers_own(line: str) -> bool:
    """Whether a line is blank, ours, or one in which a launcher reports the end."""
    return bool(log_words("launchers_own").search(line) or re.search(SLURM_SAYS, line))
