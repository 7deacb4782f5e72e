"""The tier files of one checkpoint, read and checked.

Results of an external command may lack the per-item tables; those of the engine may not.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evaluation.bridge.statistics import Floats
from evaluation.errors import BridgeError
from evaluation.settings.tiers import TIERS, TierName

EXTERNAL = "external"
"""How the protocol begins where an external command wrote the files."""


@dataclass(frozen=True, kw_only=True)
class Header:
    """What the top level of a tier file says of its origin; `content` is all of it."""

    path: Path
    stage: str
    step: int | None
    role: str
    checkpoint: str
    identity: str
    tokenizer: str | None
    sequence_length: int
    protocol: str
    content: Mapping[str, Any] = field(repr=False)

    @property
    def is_external(self) -> bool:
        return self.protocol.startswith(EXTERNAL)


@dataclass(frozen=True, kw_only=True)
class Blocks:
    """Scores of a slice's packed blocks, by their number; (n,) each. Bytes are UTF-8."""

    block: "np.typing.NDArray[np.int64]"
    nats: Floats
    tokens: Floats
    bytes: Floats


@dataclass(frozen=True, kw_only=True)
class SliceResult:
    ppl: float
    nats_per_token: float
    bits_per_byte: float | None
    group: str | None
    data: Any
    blocks: Blocks | None
    entry: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    accuracy: float
    primary: str | None
    group: str | None
    data: Any
    candidates: pa.Table | None = field(repr=False)
    entry: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class ProbeResult:
    """Rates of Tier4; `prompts` is empty where an external command gave none."""

    rates: Mapping[str, float | None]
    by_category: Mapping[str, Mapping[str, Any]]
    prompts: tuple[Mapping[str, Any], ...]
    data: Any


@dataclass(frozen=True, kw_only=True)
class Results:
    """All tiers of one checkpoint; a tier that was not asked for is empty."""

    folder: Path
    headers: Mapping[TierName, Header]
    slices: Mapping[str, SliceResult]
    tasks: Mapping[str, TaskResult]
    probes: ProbeResult | None

    @property
    def header(self) -> Header:
        return next(iter(self.headers.values()))


def tiers_in(folder: Path) -> tuple[TierName, ...]:
    """The tiers whose file is there."""
    return tuple(name for name, tier in TIERS.items() if (folder / tier.summary_file).exists())


def read_results(folder: Path, tiers: Iterable[TierName]) -> Results:
    """Reads the tiers of a results folder; raises BridgeError naming file and key."""
    contents = {tier: _read_json(folder / TIERS[tier].summary_file) for tier in tiers}
    if not contents:
        raise BridgeError(f"{folder}: no tier files; score this checkpoint first")
    headers = {
        tier: _header(folder / TIERS[tier].summary_file, text) for tier, text in contents.items()
    }
    return Results(
        folder=folder,
        headers=headers,
        slices=_slices(headers["tier2"], folder) if "tier2" in headers else {},
        tasks=_tasks(headers["tier3"], folder) if "tier3" in headers else {},
        probes=_probes(headers["tier4"]) if "tier4" in headers else None,
    )


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise BridgeError(f"{path}: no such file; score this checkpoint first") from None
    except ValueError as error:
        raise BridgeError(f"{path}: not JSON ({error}); remove it and score again") from None
    if not isinstance(content, dict):
        raise BridgeError(f"{path}: not a JSON object; remove it and score again")
    return content


def _take(content: Mapping[str, Any], key: str, kind: Any, path: Path, where: str = "") -> Any:
    """A value of a JSON object, of the kind wanted."""
    value = content.get(key)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        if math.isfinite(value):
            return value
    elif isinstance(value, kind):
        return value
    raise BridgeError(
        f"{path}: {where}{key} is {value!r}; remove the file and score this checkpoint again"
    )


def _header(path: Path, content: dict[str, Any]) -> Header:
    tokenizer = _take(content, "tokenizer", dict, path)
    return Header(
        path=path,
        stage=_take(content, "stage", str, path),
        step=_take(content, "step", int | None, path),
        role=_take(content, "role", str, path),
        checkpoint=_take(content, "checkpoint", str, path),
        identity=_take(content, "checkpoint_identity", str, path),
        tokenizer=tokenizer.get("fingerprint") or tokenizer.get("name"),
        sequence_length=_take(content, "sequence_length", int, path),
        protocol=_take(content, "protocol", str, path),
        content=content,
    )


def _entries(header: Header, section: str) -> dict[str, dict[str, Any]]:
    entries: dict[str, Any] = _take(header.content, section, dict, header.path)
    if not entries:
        raise BridgeError(f"{header.path}: {section} is empty; score this checkpoint again")
    return {name: _take(entries, name, dict, header.path, f"{section}.") for name in entries}


def _table(header: Header, path: Path, columns: tuple[str, ...]) -> pa.Table | None:
    """A per-item table; None where an external command wrote none."""
    if not path.exists():
        if header.is_external:
            return None
        raise BridgeError(f"{path}: no such file; score this checkpoint again")
    try:
        table = pq.read_table(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BridgeError(f"{path}: damaged ({error}); score this checkpoint again") from None
    missing = [name for name in columns if name not in table.column_names]
    if missing:
        raise BridgeError(f"{path}: no column {missing[0]!r}; score this checkpoint again")
    return table


def _rows_of(table: pa.Table, column: str, name: str, path: Path) -> pa.Table:
    names = table[column].to_numpy(zero_copy_only=False)
    rows = table.take(np.flatnonzero(names == name))
    if not rows.num_rows:
        raise BridgeError(f"{path}: no rows of {name!r}; score this checkpoint again")
    return rows


def _slices(header: Header, folder: Path) -> dict[str, SliceResult]:
    path = folder / TIERS["tier2"].items_file
    table = _table(header, path, ("slice", "block", "nats", "tokens", "bytes"))
    found = {}
    for name, entry in _entries(header, "slices").items():
        where = f"slices.{name}."
        ppl = _take(entry, "ppl", float, header.path, where)
        if ppl <= 0:
            raise BridgeError(f"{header.path}: {where}ppl is {ppl}, which no perplexity can be")
        found[name] = SliceResult(
            ppl=ppl,
            nats_per_token=math.log(ppl)
            if header.is_external and entry.get("nats_per_token") is None
            else _take(entry, "nats_per_token", float, header.path, where),
            bits_per_byte=entry.get("bits_per_byte"),
            group=entry.get("group"),
            data=entry.get("data_checksum"),
            blocks=None if table is None else _blocks(_rows_of(table, "slice", name, path), path),
            entry=entry,
        )
    return found


def _blocks(rows: pa.Table, path: Path) -> Blocks:
    columns = {name: rows[name].to_numpy() for name in ("block", "nats", "tokens", "bytes")}
    if not np.isfinite(columns["nats"]).all():
        raise BridgeError(f"{path}: a loss is NaN or infinite; score this checkpoint again")
    order = np.argsort(columns["block"], kind="stable")
    return Blocks(
        block=columns["block"][order].astype(np.int64),
        nats=columns["nats"][order].astype(np.float64),
        tokens=columns["tokens"][order].astype(np.float64),
        bytes=columns["bytes"][order].astype(np.float64),
    )


def _tasks(header: Header, folder: Path) -> dict[str, TaskResult]:
    path = folder / TIERS["tier3"].items_file
    columns = ("task", "item", "cluster", "candidate", "gold", "logprob", "unconditional")
    table = _table(header, path, (*columns, "tokens", "chars", "bytes"))
    found = {}
    for name, entry in _entries(header, "tasks").items():
        found[name] = TaskResult(
            accuracy=_take(entry, "accuracy", float, header.path, f"tasks.{name}."),
            primary=entry.get("primary"),
            group=entry.get("group"),
            data=entry.get("data_checksum"),
            candidates=None if table is None else _rows_of(table, "task", name, path),
            entry=entry,
        )
    return found


def _probes(header: Header) -> ProbeResult:
    summary = _take(header.content, "summary", dict, header.path)
    _take(summary, "all_checks_pass_rate", float, header.path, "summary.")
    prompts = header.content.get("prompts") or []
    return ProbeResult(
        rates={key: value for key, value in summary.items() if key.endswith("_rate")},
        by_category=header.content.get("by_category") or {},
        prompts=tuple(prompts),
        data=header.content.get("data_checksum"),
    )
