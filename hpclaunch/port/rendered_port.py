"""The script of a ported job, and what lint says about it."""

import msgspec

from hpclaunch.job.prepare import SubmitMode, dry_run, prepare
from hpclaunch.job.settings_files import read_layers
from hpclaunch.lint.lint_script import find_faults
from hpclaunch.plan.settings import JobSettings, Layer
from hpclaunch.port.port_script import Ported
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.validate import to_struct
from hpclaunch.site.yaml_tree import parse_tree

JOB_FILE_NAME = "job.yaml"


def rendered_port(ported: Ported, target: SiteProfile) -> tuple[Ported, str]:
    """Return the script, as ``submit --file job.yaml --dry-run`` prints it, and the port with its faults.

    An error or a warning about the new script is something to do. Raises BadInputError where no script can be
    written.
    """
    settings = to_struct(parse_tree(ported.job_file, JOB_FILE_NAME), JobSettings)
    layers = read_layers(JobSettings(site=settings.site), None)
    layers.insert(1, Layer(origin=f"job file {JOB_FILE_NAME}", settings=settings))
    script = dry_run(prepare(layers, SubmitMode(here=False)))[1]
    found = [one for one in find_faults(script, target) if one.severity != "note"]
    said = (f"line {one.line or 1} of the new script: {one.message} ({one.rule})" for one in found)
    return msgspec.structs.replace(ported, to_do=(*ported.to_do, *dict.fromkeys(said))), script
