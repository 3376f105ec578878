"""The report of a port as text for a terminal and as a JSON document, and its script with what lint says."""

import msgspec

from hpclaunch.amounts import counted
from hpclaunch.errors import BadInputError
from hpclaunch.job.job_script import dry_run
from hpclaunch.job.prepare import Prepared, SubmitMode, prepare
from hpclaunch.job.settings_files import read_layers
from hpclaunch.lint.lint_script import find_faults
from hpclaunch.plan.settings import JobSettings, Layer
from hpclaunch.port.line_report import LineReport
from hpclaunch.port.port_script import Ported
from hpclaunch.site.schema import SiteProfile
from hpclaunch.site.validate import to_struct
from hpclaunch.site.yaml_tree import parse_tree
from hpclaunch.text_table import printable


class PortDocument(LineReport, frozen=True, kw_only=True):
    """The output of ``port``: each line of the script that is not only a comment, once, and the new files."""

    job_file: str
    script: str


DOCUMENTS = {"port": PortDocument}
"""Name of the schema -> its type."""
JOB_FILE_NAME = "job.yaml"


def report_text(ported: Ported) -> str:
    """Return the report: kept, changed, left out, then what is to do and what the script does not say."""
    report, lines = ported.report, list[str]()
    by_fate = {"kept": report.kept, "changed": report.changed, "left out": report.left_out}
    for fate, found in by_fate.items():
        lines += ["", f"{fate}: {counted(len(found), 'line')}"]
        for one in found:
            lines.append(f"  {one.line:>4}  {printable(one.text.strip())}")
            about = [(key, getattr(one, key)) for key in ("to", "why", "source") if hasattr(one, key)]
            lines += [f"        {key + ':':<7} {_whole(text)}" for key, text in about]
    more = {"to do before it is submitted:": ported.to_do, "not in the script:": ported.notes}
    for title, texts in more.items():
        lines += ["", title, *(f"  - {_whole(text)}" for text in texts)] if texts else []
    return "\n".join([*lines[1:], ""])


def _whole(text: str) -> str:
    return printable(text.replace("\n", "; "))


def check_text(name: str, data: bytes) -> str:
    """Return a script's text; raises BadInputError with the line where it is not text."""
    if b"\0" in data:
        line = data[: data.index(b"\0")].count(b"\n") + 1
        raise BadInputError(f"{name}: line {line}: a NUL byte: this is not a script", "give a batch script")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise BadInputError(f"{name}: line {line}: not UTF-8", "save the script as UTF-8") from None
    if not text.strip():
        raise BadInputError(f"{name}: line 1: the script is empty", "give a batch script")
    return text


def prepared(ported: Ported) -> Prepared:
    """Return the job; a profile without a node has the one that its scheduler here tells of."""
    settings = to_struct(parse_tree(ported.job_file, JOB_FILE_NAME), JobSettings)
    layers = read_layers(JobSettings(site=settings.site), None)
    layers.insert(1, Layer(origin=f"job file {JOB_FILE_NAME}", settings=settings))
    return prepare(layers, SubmitMode(here=False))


def rendered_port(ported: Ported, target: SiteProfile) -> tuple[Ported, str]:
    """Return the script, as ``submit --file job.yaml --dry-run`` prints it, and the port with its faults.

    An error or a warning about the new script is something to do, and an array that the queue may refuse.
    Raises BadInputError where no script can be written.
    """
    plan, script = dry_run(prepared(ported))
    refused = [text for text in plan.warnings if text.startswith("array: ")]
    named = "\n".join(ported.to_do)
    found = [one for one in find_faults(script, target) if one.severity != "note"]
    found = [one for one in found if one.rule != "placeholder" or one.message.split(" is ")[0] not in named]
    said = (f"line {one.line or 1} of the new script: {one.message} ({one.rule})" for one in found)
    to_do = (*ported.to_do, *refused, *dict.fromkeys(said))
    return msgspec.structs.replace(ported, to_do=to_do), script
