"""A transformer by its sizes, written out as rows of a table of layers. Pure.

Rows marked ``parallel`` are what tensor parallelism divides as Megatron-LM does (Shoeybi et al. 2019,
arXiv 1909.08053): heads, the inner layer of the MLP, the vocabulary of the last layer.
"""

# No annotations from __future__: msgspec would compile each of these texts when it first reads one.
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

Size = Annotated[int, Meta(ge=1, le=1 << 40, description="a whole number, at least 1")]


class Transformer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The sizes of a transformer; its input is [tokens], or an image that is cut in patches."""

    blocks: Size
    hidden: Size
    heads: Size
    kv_heads: Size | None = None
    head_width: Size | None = None
    inner: Size | None = None
    mlp: Literal["gelu", "swiglu"] = "gelu"
    norm: Literal["layernorm", "rmsnorm"] = "layernorm"
    norm_first: bool = True
    positions: Literal["learned", "none"] = "learned"
    """``none`` is that of rotary embeddings and of ALiBi, too: they have no parameters."""
    position_count: Size | None = None
    vocabulary: Size | None = None
    types: Size | None = None
    patch: Size | None = None
    classes: Size | None = None
    biases: bool = True
    tied: bool = True
    flash: bool = True
    dropout: bool = False
    masked: bool = False
    """A head for masked words: a linear layer and a normalisation before the vocabulary, as BERT's."""


def transformer_rows(sizes: Transformer, sample: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the rows, as a model's file would have them."""
    rows = _embedded(sizes, sample)
    for number in range(sizes.blocks):
        rows += _block(sizes, f"b{number}", rows[-1]["name"])
    if sizes.norm_first:
        rows.append({"name": "norm", "kind": sizes.norm, "block": "head", "bias": sizes.biases})
    if sizes.masked:
        rows.append({"name": "transform", "kind": "linear", "outputs": sizes.hidden, "block": "head"})
        rows.append({"name": "transform_gelu", "kind": "gelu", "block": "head"})
        rows.append({"name": "transform_norm", "kind": sizes.norm, "block": "head"})
    if sizes.classes:
        rows.append({"name": "first", "kind": "tokens", "block": "head"})
        rows.append({"name": "head", "kind": "linear", "outputs": sizes.classes, "block": "head"})
    elif sizes.vocabulary:
        head = {"outputs": sizes.vocabulary, "bias": sizes.masked, "tied": sizes.tied, "parallel": True}
        rows.append({"name": "head", "kind": "linear", "block": "head", **head})
        rows.append({"name": "loss", "kind": "loss", "block": "head"})
    return rows


def _embedded(sizes: Transformer, sample: tuple[int, ...]) -> list[dict[str, Any]]:
    """Return the rows before the first block."""
    tokens, hidden = sample[0], sizes.hidden
    if sizes.patch:
        window = {"kernel": [sizes.patch] * 2, "stride": [sizes.patch] * 2}
        rows: list[dict[str, Any]] = [
            {"name": "patches", "kind": "conv", "filters": hidden, "block": "embedding", **window},
            {"name": "tokens", "kind": "tokens", "extra": 1, "block": "embedding"},
        ]
        tokens = (sample[1] // sizes.patch) * (sample[2] // sizes.patch) + 1
        count = tokens + 1  # the class token is a parameter, too
    else:
        words = {"vocabulary": sizes.vocabulary, "outputs": hidden}
        rows = [{"name": "words", "kind": "embedding", "block": "embedding", **words}]
        count = (sizes.position_count or tokens) + (sizes.types or 0)
    if sizes.positions == "learned":
        table = {"vocabulary": count, "outputs": hidden}
        rows.append({"name": "positions", "kind": "positions", "block": "embedding", **table})
    if not sizes.norm_first:
        rows.append({"name": "embedding_norm", "kind": sizes.norm, "block": "embedding"})
    if sizes.dropout:
        rows.append({"name": "embedding_dropout", "kind": "dropout", "block": "embedding"})
    return rows


def _block(sizes: Transformer, block: str, before: str) -> list[dict[str, Any]]:
    """Return the rows of one block."""
    rows: list[dict[str, Any]] = []

    def row(name: str, kind: str, **keys: Any) -> str:
        rows.append({"name": f"{block}_{name}", "kind": kind, "block": block, **keys})
        return f"{block}_{name}"

    def norm(name: str, source: str) -> str:
        return row(name, sizes.norm, bias=sizes.biases, **{"from": [source]})

    def dropped(name: str) -> None:
        if sizes.dropout:
            row(name, "dropout")

    heads, groups = sizes.heads, sizes.kv_heads or sizes.heads
    width = sizes.head_width or sizes.hidden // heads
    source = norm("norm1", before) if sizes.norm_first else before
    kept = {"bias": sizes.biases}
    row("qkv", "linear", outputs=width * (heads + 2 * groups), parallel=True, **kept, **{"from": [source]})
    attention = {"heads": heads, "kv_heads": groups, "flash": sizes.flash}
    row("attention", "attention", parallel=True, dropout=sizes.dropout, **attention)
    row("project", "linear", outputs=sizes.hidden, **kept)
    dropped("dropout1")
    middle = row("add1", "add", **{"from": [rows[-1]["name"], before]})
    source = norm("norm2" if sizes.norm_first else "norm1", middle)
    inner = {"outputs": sizes.inner or 4 * sizes.hidden, "parallel": True, **kept}
    if sizes.mlp == "swiglu":
        row("gate", "linear", **inner, **{"from": [source]})
        gate = row("silu", "elementwise", parallel=True)
        up = row("up", "linear", **inner, **{"from": [source]})
        row("product", "multiply", parallel=True, **{"from": [gate, up]})
    else:
        row("up", "linear", **inner, **{"from": [source]})
        row("gelu", "gelu", parallel=True)
    row("down", "linear", outputs=sizes.hidden, **kept)
    dropped("dropout2")
    row("add2", "add", **{"from": [rows[-1]["name"], middle if sizes.norm_first else source]})
    if not sizes.norm_first:
        norm("norm2", rows[-1]["name"])
    return rows
