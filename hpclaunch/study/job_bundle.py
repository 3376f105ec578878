"""A record of an ended job for papers and reviewers: one archive, the same bytes each time it is made."""

import gzip
import hashlib
import io
import os
import re
import tarfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from hpclaunch.api import JobHandle
from hpclaunch.atomic_file import write_file
from hpclaunch.errors import BadInputError, HpclaunchError
from hpclaunch.json_document import document_text
from hpclaunch.package_data import package_constants
from hpclaunch.plan.request_texts import looks_secret
from hpclaunch.scaling.study_report import StudyDocument, as_csv
from hpclaunch.study.study_file import load_study, report_of, studies_folder
from hpclaunch.usage.report_documents import ReportDocument
from hpclaunch.usage.report_page import page
from hpclaunch.usage.report_text import shown

LIMIT = package_constants("study/limits.yaml", "bundle")
_VALUE, _IN_ADDRESS = re.compile(LIMIT.value), re.compile(LIMIT.in_address)


def write_bundle(handle: JobHandle, report: ReportDocument, path: Path) -> int:
    """Write the archive to a new file; return how many values that look secret were left out.

    Script, plan, versions and commit, the ranks' reports on their binding, report, result, and the studies
    that the job is part of. Raises BadInputError where something, a link, too, has the file's name, and for
    a job that has not ended.
    """
    if not handle.ended:
        raise BadInputError(f"job {handle.id} has not ended", f"hpclaunch wait {handle.id}")
    if os.path.lexists(path):
        raise BadInputError(f"--bundle {path}: it is there already", "name a new file")
    secrets, files = 0, {}
    for name, data in _files(handle, report):
        text, found = without_secrets(data.decode("utf-8", "surrogateescape"))
        files[name], secrets = text.encode("utf-8", "surrogateescape"), secrets + found
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(files.items()))
    files["SHA256SUMS"] = sums.encode()
    write_file(path, _archive(files, f"hpclaunch-{handle.id}"))
    return secrets


def _files(handle: JobHandle, report: ReportDocument) -> Iterator[tuple[str, bytes]]:
    record = handle.record
    with handle.connected() as host:
        found = host.read_files([f"{record.folder}/{name}" for name in LIMIT.names])
        binding = handle.binding() or record.binding
    yield from ((LIMIT.names[path.removeprefix(f"{record.folder}/")], data) for path, data in found.items())
    names = ("site", "scheduler", "profile_digest", "versions", "git_commit", "command")
    yield "versions.json", _json({name: getattr(record, name) for name in names})
    yield "plan.json", _json({"request": record.request, "plan": record.plan})
    yield "binding.json", _json(binding)
    yield "report.json", _json(report)
    yield "report.txt", f"{shown(report)}\n".encode()
    yield "report.html", page(report).encode("utf-8", "surrogatepass")
    for name, document in _studies(handle.id):
        yield f"study-{name}.json", _json(document)
        yield f"study-{name}.csv", f"{as_csv(document)}\n".encode()


def _studies(job: str) -> Iterator[tuple[str, StudyDocument]]:
    """Yield the studies with a point of this job; a damaged one, or one without a figure, is left out."""
    for name in sorted(os.listdir(studies_folder())) if studies_folder().is_dir() else ():
        with suppress(HpclaunchError):
            study = load_study(name)
            if job in [point.job for point in study.points]:
                yield name, report_of(study)[0]


def _json(value: object) -> bytes:
    return f"{document_text(value, 2)}\n".encode()


def without_secrets(text: str) -> tuple[str, int]:
    """Return the text without values of variables, options and keys that look secret, and how many they were.

    User and password of an address are left out, too.
    """
    text, number = _IN_ADDRESS.subn(rf"\1{LIMIT.left_out}@", text)

    def cleaned(match: re.Match[str]) -> str:
        nonlocal number
        if looks_secret((match["option"] or match["name"]).replace("-", "_")):
            number += 1
            quote = match["value"][0] if match["value"][0] in "'\"" else ""
            return f"{match['head']}{quote}{LIMIT.left_out}{quote}"
        return match["head"] + _VALUE.sub(cleaned, match["value"])

    return _VALUE.sub(cleaned, text), number


def _archive(files: dict[str, bytes], folder: str) -> bytes:
    out = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=out, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name, data in sorted(files.items()):
            member = tarfile.TarInfo(f"{folder}/{name}")
            member.size, member.mode = len(data), 0o644
            archive.addfile(member, io.BytesIO(data))
    return out.getvalue()
