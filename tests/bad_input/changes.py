"""What a case may do to a world: the functions that its lines call, all in the world's folder."""

import functools
import gzip
import itertools
import json
import operator
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import yaml
from safetensors import safe_open
from safetensors.torch import load_file, save_file

HERE = "VALUE_HERE"
FIRST = "ckpts/stage1/10"
WEIGHTS: dict[str, Callable[[torch.Tensor], torch.Tensor | None]] = {
    "nan": lambda data: torch.full_like(data, float("nan")),
    "one nan": lambda data: data.flatten().index_fill(0, torch.tensor(0), torch.nan).view_as(data),
    "inf": lambda data: torch.full_like(data, float("inf")),
    "zero": torch.zeros_like,
    "huge": lambda data: torch.full_like(data, 3e38),
    "integer": lambda data: data.to(torch.int32),
    "bool": lambda data: data > 0,
    "float64": lambda data: data.double(),
    "float16": lambda data: data.half(),
    "bfloat16": lambda data: data.bfloat16(),
    "flat": lambda data: data.flatten().contiguous(),
    "scalar": lambda data: torch.tensor(1.0),
    "empty": lambda data: data[:0].contiguous(),
    "one row less": lambda data: data[:-1].contiguous(),
    "one dimension more": lambda data: data[None].contiguous(),
    "transposed": lambda data: data.T.contiguous(),
    "shuffled": lambda data: data.flip(0).contiguous(),
    "gone": lambda data: None,
}


def edited(file: str, key: str, change: Callable[[Any, Any], None]) -> str:
    """The YAML of a file after a change of the mapping or list that holds the key."""
    content = yaml.safe_load(Path(file).read_text())
    place, names = content, _names(key)
    for name, after in itertools.pairwise(names):
        if isinstance(place, dict) and not isinstance(place.get(name), dict | list):
            place[name] = [] if isinstance(after, int) else {}
        elif isinstance(place, list) and name == len(place):
            place.append({})
        place = place[name]
    change(place, names[-1])
    return yaml.safe_dump(content, sort_keys=False, width=10**6)


def _names(key: str) -> list[Any]:
    return [int(name) if name.isdigit() else name for name in re.split(r"(?<!\\)\.", key)]


def _marked(file: str, key: str) -> str:
    """The YAML of a file with `HERE` in place of a key's value."""

    def mark(place: Any, name: Any) -> None:
        if isinstance(place, list) and name == len(place):
            place.append(HERE)
        else:
            place[name] = HERE

    return edited(file, key, mark)


def put(file: str, key: str, text: str) -> None:
    """Gives a key of a YAML file this value, which is any text, YAML or not."""
    text = re.sub(r"<(.+) x (\d+)>", lambda found: found[1] * int(found[2]), text)
    Path(file).write_text(_marked(file, key).replace(HERE, text, 1))


def drop(file: str, key: str) -> None:
    Path(file).write_text(edited(file, key, lambda place, name: place.pop(name)))


def misspelt(file: str, key: str, text: str) -> None:
    """The same key without its last letter."""
    put(file, key[:-1], text)


def twice(file: str, key: str, text: str) -> None:
    """The key stands there two times."""
    put(file, key, text)
    dumped = _marked(file, key)
    line = next(line for line in dumped.splitlines() if HERE in line)
    line = line.replace("- ", "  ") if line.lstrip().startswith("- ") else line
    twofold = dumped.replace(HERE, f"{text}\n{line.replace(HERE, text)}")
    Path(file).write_text(twofold)


def write(file: str, text: str) -> None:
    path = Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def hexadecimal(file: str, content: str) -> None:
    Path(file).write_bytes(bytes.fromhex(content))


def replaced(file: str, old: str, new: str) -> None:
    text = Path(file).read_text()
    if old not in text:
        raise ValueError(f"{file} has no {old!r}")
    Path(file).write_text(text.replace(old, new))


def recoded(file: str, encoding: str) -> None:
    """The same text in another encoding, or with other ends of lines (`crlf`, `cr`)."""
    text, ends = Path(file).read_text(), {"crlf": "\r\n", "cr": "\r"}
    if encoding in ends:
        text, encoding = text.replace("\n", ends[encoding]), "utf-8"
    Path(file).write_bytes(text.encode(encoding))


def as_json(file: str, key: str, value: Any) -> None:
    """Gives a key of a JSON file a value; `...` removes it."""
    content = json.loads(Path(file).read_text())
    *names, last = _names(key)
    place = functools.reduce(operator.getitem, names, content)
    if value is ...:
        del place[last]
    else:
        place[last] = value
    Path(file).write_text(json.dumps(content))


def model(key: str, value: Any, folder: str = FIRST) -> None:
    """The same key in both files of a checkpoint that describe its model."""
    as_json(f"{folder}/model_config.json", key, value)
    put(f"{folder}/config.yaml", f"model.model_config.{key}", json.dumps(value))


def jsonl(file: str, *rows: Any) -> None:
    """Rows of a JSONL file; a text is a line as it stands."""
    write(file, "".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))


def quiz(**keys: Any) -> None:
    """Two questions, with these keys changed; `...` leaves a key out."""
    given = {"question": "the cat sat", "answers": ["on", "far"], "label": 0, **keys}
    jsonl("data/quiz/test.jsonl", *[{k: v for k, v in given.items() if v is not ...}] * 2)


def parquet(file: str, columns: dict[str, Any], **options: Any) -> None:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), file, **options)


def gzipped(file: str, text: str, times: int = 1) -> None:
    """A gzip file of the text, over and over."""
    with gzip.open(file, "wb", 9) as out:
        out.writelines(itertools.repeat(text.encode(), times))


def zstandard(file: str, text: str) -> None:
    write(file, "")
    with pa.OSFile(file, "wb") as raw, pa.CompressedOutputStream(raw, "zstd") as out:
        out.write(text.encode())


def saved_dataset(folder: str, columns: dict[str, Any]) -> None:
    subprocess.run(["rm", "-rf", folder], check=True)
    from datasets import Dataset

    Dataset.from_dict(columns).save_to_disk(folder)


def weight(part: str, folder: str = FIRST) -> Path:
    return sorted(Path(folder, "model").rglob(f"*{part}*/model_weight*"))[0]


def tensor(part: str, how: str, folder: str = FIRST) -> None:
    """Changes the weight whose path has this part."""
    _rewrite(weight(part, folder), WEIGHTS[how])


def all_tensors(how: str, folder: str = FIRST) -> None:
    for path in Path(folder, "model").rglob("model_weight*"):
        _rewrite(path, WEIGHTS[how])


def _rewrite(
    path: Path, change: Callable[[torch.Tensor], torch.Tensor | None], part: str = ""
) -> None:
    """Changes the tensors whose names have this part; those that become None are removed."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    content = {name: change(one) if part in name else one for name, one in load_file(path).items()}
    save_file({name: one for name, one in content.items() if one is not None}, path, metadata)


def header(part: str, old: str, new: str, folder: str = FIRST) -> None:
    """Replaces text in the header of a weight file, whose length stays right."""
    path = weight(part, folder)
    content = path.read_bytes()
    size = 8 + int.from_bytes(content[:8], "little")
    text = content[8:size].replace(old.encode(), new.encode())
    if text == content[8:size]:
        raise ValueError(f"{path}: no {old!r} in {text!r}")
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[size:])


def hugging_face(part: str, how: str, folder: str = "hf/1-10") -> None:
    """The same of a Hugging Face folder."""
    _rewrite(Path(folder) / "model.safetensors", WEIGHTS[how], part)


def torch_file(name: str, tensor: str) -> None:
    """Puts a tensor into a file of the cache, which an expression gives."""
    torch.save(eval(tensor), next(Path("cache").glob(f"*/{name}")))


def record(key: str, value: Any) -> None:
    """Gives a key of the record of the slice's prefill a value."""
    as_json(str(next(Path("cache").glob("*/ppl_slices/text/.made/prefill.json"))), key, value)


def own_head(folder: str) -> None:
    """Adds an output layer that differs to a model whose configuration says that it is tied."""
    path = Path(folder) / "model.safetensors"
    content = load_file(path)
    content["lm_head.weight"] = content["model.embed_tokens.weight"].flip(0).contiguous()
    save_file(content, path, {"format": "pt"})


def reference(file: str, **tensors: Any) -> None:
    """A safetensors file of these arrays."""
    save_file({name: torch.tensor(np.array(value)) for name, value in tensors.items()}, file)


FUNCTIONS: dict[str, Any] = {
    name: value for name, value in globals().items() if callable(value) and name.islower()
} | {"json": json, "Path": Path}
