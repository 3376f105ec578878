"""The JSON Schema of a job file, for editors: its keys and types, each with its meaning."""

from typing import Any

import msgspec

from hpclaunch.plan.settings import JobSettings
from hpclaunch.plan.settings_table import rows


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12, of what any site takes; ``submit --dry-run`` checks the rest."""
    definitions = msgspec.json.schema(JobSettings)["$defs"]
    properties = definitions.pop("JobSettings")["properties"]
    for row in rows():
        properties[row.name].pop("default", None)  # of the file; that of the setting is in its help
        properties[row.name]["description"] = " ".join(row.help.split())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://json.schemastore.org/hpclaunch-job.json",
        "title": "hpclaunch job file",
        "description": "The settings of one job, which hpclaunch submit --file reads.",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "$defs": definitions,
    }
