"""A transformer by its sizes, written out as rows of a table of layers, ``transformer_rows.json``. Pure."""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
import json
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from hpclaunch.package_data import text_beside

Size = Annotated[int, Meta(ge=1, le=1 << 40, description="a whole number, at least 1")]


class Transformer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The sizes of a transformer; its input is [tokens], or an image that is cut in patches."""

    blocks: Size
    hidden: Size
    heads: Size
    kv_heads: Size | None = None
    inner: Size | None = None
    mlp: Literal["gelu", "swiglu"] = "gelu"
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_first: bool = True
    positions: Literal["learned", "none"] = "learned"
    vocabulary: Size | None = None
    types: Size | None = None
    patch: Size | None = None
    classes: Size | None = None
    biases: bool = True
    tied: bool = True
    flash: bool = True
    dropout: bool = False
    masked: bool = False


@cache
def _rows_of() -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = json.loads(text_beside(__file__, "transformer_rows.json"))
    return found


def transformer_rows(sizes: Transformer, sample: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the rows, as a model's file would have them."""
    groups, patch = sizes.kv_heads or sizes.heads, sizes.patch
    # The class token is a parameter, too.
    places = 2 + (sample[1] // patch) * (sample[2] // patch) if patch else sample[0] + (sizes.types or 0)
    values = {name.upper(): value for name, value in msgspec.structs.asdict(sizes).items()} | {
        "KV_HEADS": groups,
        "QKV": sizes.hidden // sizes.heads * (sizes.heads + 2 * groups),
        "INNER": sizes.inner or 4 * sizes.hidden,
        "LEARNED": sizes.positions == "learned",
        "POSITION_ROWS": places,
        "SWIGLU": sizes.mlp == "swiglu",
    }
    rows: list[dict[str, Any]] = []
    parts = [("embedding", ""), *(("block", f"b{number}_") for number in range(sizes.blocks)), ("head", "")]
    for part, prefix in parts:
        start = rows[-1]["name"] if rows else "input"
        for row in _rows_of()[part]:
            if values[row.get("if", "HIDDEN")] and not values.get(row.get("unless", "")):
                before = rows[-1]["name"] if rows else "input"
                names = {"PREVIOUS": before, "START": start}
                made = {
                    key: _value(value, values) for key, value in row.items() if key not in ("if", "unless")
                }
                if "from" in row:
                    made["from"] = [names.get(name, prefix + name) for name in row["from"]]
                rows.append({**made, "name": prefix + row["name"], "block": prefix or part})
    return rows


def _value(value: Any, values: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_value(one, values) for one in value]
    return values.get(value, value) if isinstance(value, str) else value
