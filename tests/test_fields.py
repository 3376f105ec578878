"""``hpclaunch/fields.yaml``: each meaning is that of a field, each key of the package's tables has one."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

import msgspec

from hpclaunch.framework_table import Framework, Goal, WorkerLauncher
from hpclaunch.json_document import field_docs
from hpclaunch.package_data import package_table
from hpclaunch.scheduler.scheduler_interface import SchedulerData
from tests.in_one_test import in_one_test

PACKAGE = Path(__file__).parents[1] / "hpclaunch"
TABLE: dict[str, dict[str, dict[str, str]]] = package_table("fields.yaml")


@in_one_test("stem", TABLE)
def test_each_meaning_is_of_a_field(stem: str) -> None:
    (path,) = PACKAGE.rglob(f"{stem}.py")
    module = import_module(".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts))
    for struct, meanings in TABLE[stem].items():
        found = getattr(module, struct)
        # a struct, a dataclass, else a named tuple
        names = ("__struct_fields__", "__dataclass_fields__", "_fields")
        fields = set(next(getattr(found, name) for name in names if hasattr(found, name)))
        assert set(meanings) <= fields, struct


@in_one_test("struct", [SchedulerData, Framework, Goal, WorkerLauncher])
def test_each_key_of_a_table_has_a_meaning(struct: type[msgspec.Struct]) -> None:
    assert set(struct.__struct_fields__) - set(field_docs(struct)) <= {"name"}
