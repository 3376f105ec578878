"""Where the folders of jobs are on another machine: as requested, on scratch, or in the home folder."""

from __future__ import annotations

from hpclaunch.command_result import CommandResult
from hpclaunch.errors import BadInputError
from hpclaunch.host.host_interface import Host
from hpclaunch.host.ssh import state_folder
from hpclaunch.job.refresh import Note
from hpclaunch.plan.request import JobRequest
from hpclaunch.site.schema import SiteProfile
from hpclaunch.software.shell_quoting import double_quote

# Prints the folder if it is, or can be made, a folder that this user writes into; nothing is made yet.
_LOOK = """
case $folder in /*) ;; *) echo "$folder is not an absolute path" >&2; exit 1 ;; esac
there=$folder
until [ -e "$there" ]; do there=$(dirname -- "$there"); done
[ -d "$there" ] || { echo "$there is not a folder" >&2; exit 1; }
[ -w "$there" ] || { echo "$there is not writable" >&2; exit 1; }
printf %s "$folder"
"""


def job_root(host: Host, request: JobRequest, profile: SiteProfile, note: Note) -> str:
    """Return the folder on the host whose ``jobs`` holds the folders of jobs.

    Raises BadInputError where the requested one cannot be used; one of the profile is then noted and passed
    over.
    """
    # SFTP is needed later; one that does not work is refused before anything is recorded.
    host.exists("/")
    account: dict[str, str | None] = {"SLURM_JOB_ACCOUNT": request.account} if request.account else {}
    if request.remote_dir is not None:
        answer = _look(host, request.remote_dir, account)
        if answer.exit_code != 0:
            raise BadInputError(
                f"--remote-dir {request.remote_dir}: {answer.stderr.strip()} on {host.name}",
                "name a folder that you can write to there",
            )
        return answer.stdout
    usual = next((each.job_folder for each in profile.storage.values() if each.job_folder), None)
    if usual is not None:
        answer = _look(host, f"{usual}/hpclaunch", account)
        if answer.exit_code == 0:
            return answer.stdout
        note(
            f"the job's folder is in the home folder of {host.name}, not in {usual}: {answer.stderr.strip()}"
        )
    return state_folder(host)


def _look(host: Host, folder: str, account: dict[str, str | None]) -> CommandResult:
    return host.run(("sh", "-u", "-c", f"folder={double_quote(folder)}\n{_LOOK}"), env=account)
