"""Configurations and suites that are run: shipped suites with three tokenizers, and three judged stages."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tests.frozen.checkout import SHARED

GENERATIVE = {
    "openai/gsm8k": "gsm8k", "HuggingFaceH4/MATH-500": "MATH-500", "google/IFEval": "IFEval",
    "allenai/IFBench_test": "IFBench_test", "google-research-datasets/mbpp": "mbpp",
    "openai/openai_humaneval": "openai_humaneval", "evalplus/mbppplus": "mbppplus_prerelease",
}  # fmt: skip

PATTERN = {"kind": "pattern", "pattern": r"(\w+)", "form": "{gold}"}

JUDGED: dict[str, Any] = {
    "slices": {
        "wiki": {"files": ["data/wiki.jsonl"], "tokens": 12_800, "group": "new"},
        "early": {"files": ["data/early.jsonl"], "tokens": 12_800, "attention": "document", "group": "old"},
    },
    "tasks": {
        "endings": {
            "files": ["data/endings.jsonl"], "context": "{{ ctx }}", "choices": "endings", "gold": "label",
            "group": "core",
        },
        "letters": {
            "files": ["data/endings.jsonl"], "limit": 60, "num_fewshot": 2, "fewshot_split": "train",
            "context": "{{ ctx }}\nA. {{ endings[0] }}\nB. {{ endings[1] }}\nAnswer:",
            "choices": "['A', 'B']",
            "gold": "label % 2", "group": "core",
        },
    },
}  # fmt: skip

ANSWERED: dict[str, Any] = {
    "probes": {
        "short": {
            "category": "concise", "messages": [{"role": "user", "content": "Name a colour."}],
            "checks": [{"check": "word_count", "at_most": 12}, {"check": "no_chat_artifacts"}],
            "max_new_tokens": 16,
        },
        "listed": {
            "category": "bullets", "messages": [{"role": "user", "content": "List two rivers."}],
            "checks": [{"check": "bullet_count", "exactly": 2}], "max_new_tokens": 16,
        },
    },
    "generation_tasks": {
        "greedy": {
            "files": ["data/begun.jsonl"], "limit": 24, "prompt": "{{ text }}", "chat": False,
            "max_new_tokens": 24, "document": {"gold": "gold"}, "stop": ["\n"],
            "verifiers": {"first": PATTERN, "last": {**PATTERN, "take": "last"}}, "primary": "first",
        },
        "sampled": {
            "files": ["data/begun.jsonl"], "limit": 12, "prompt": "{{ text }}", "chat": False,
            "max_new_tokens": 12, "document": {"gold": "gold"},
            "sampling": {"temperature": 0.8, "top_p": 0.95, "n": 4},
            "verifiers": {"first": PATTERN}, "primary": "first",
        },
    },
}  # fmt: skip

OBJECTIVE = [
    {"tier": "tier2", "group": "new", "want": "improve", "margin": 0.0},
    {"tier": "tier3", "want": "keep", "margin": 0.05},
]


def judged(folder: Path, work: Path) -> Path:
    """Write three stages of little models, two of a short training and one real; return the configuration."""
    stages = {
        "first": {"checkpoints": "ckpts/first", "steps": [20, 40], "suites": ["judged"]},
        "second": {
            "checkpoints": "ckpts/second", "steps": "all", "suites": ["answered"],
            "bridge": {"stage": "first", "step": 40}, "objective": OBJECTIVE,
        },
        "real": {"checkpoints": "ckpts/real", "steps": [1], "suites": ["real"]},
    }  # fmt: skip
    for stage in stages.values():
        stage["checkpoints"] = str(folder / stage["checkpoints"])
    few = {f"few_{name}": {**item, "limit": 24} for name, item in JUDGED["tasks"].items()}
    slices = {f"short_{name}": {**item, "tokens": 1024} for name, item in JUDGED["slices"].items()}
    content = {
        "judged": JUDGED,
        "answered": {"extends": "judged", **ANSWERED},
        "real": {"slices": slices, "tasks": few, **ANSWERED},
    }
    _suites(work / "suites", _absolute(content, folder))
    config = {
        "results": str(work / "results"), "cache": str(work / "cache"), "suites": str(work / "suites"),
        "tokenizer": {"name": str(folder / "smollm2")}, "sequence_length": 256, "stages": stages,
        "verification": {"workers": 2},
    }  # fmt: skip
    return _config(work / "config.yaml", config)


def shipped(folder: Path, suites: Path, work: Path, tokenizer: str) -> Path:
    """Write a stage for each suite that a checkout ships, of the frozen sizes; return the configuration."""
    content = {path.stem: _few(path, folder / "suites") for path in sorted(suites.glob("*.yaml"))}
    _suites(work / "suites", content)
    stages = {
        name: {"checkpoints": str(folder / "ckpts/first"), "steps": [20], "suites": [name]}
        for name in content
    }
    data = {name: str(SHARED / "data/generative" / place) for name, place in GENERATIVE.items()}
    is_byte_level = tokenizer == "byte_level"
    config = {
        "results": str(work / "results"), "cache": str(work / "cache"), "suites": str(work / "suites"),
        "mirrors": {**data, "*": str(folder / "mirrors")},
        "tokenizer": {"name": str(folder / ("smollm2" if is_byte_level else f"tokenizers/{tokenizer}"))},
        "sequence_length": 256, "generation": {"window": 4096}, "stages": stages,
    }  # fmt: skip
    return _config(work / "config.yaml", config)


def _few(path: Path, frozen: Path) -> dict[str, Any]:
    """Return a suite whose items have the sizes, splits and lengths that the frozen suites give them."""
    suite: dict[str, Any] = yaml.safe_load(path.read_text())
    known = [yaml.safe_load(file.read_text()) for file in frozen.glob("*.yaml")]
    for section in ("slices", "tasks", "generation_tasks", "probes"):
        sizes = {name: item for one in known for name, item in one.get(section, {}).items()}
        for name, item in suite.get(section, {}).items():
            kept = ("limit", "tokens", "skip_documents", "split", "configs", "max_new_tokens")
            item |= {key: value for key, value in sizes.get(name, {}).items() if key in kept}
        if section == "probes" and section in suite:
            suite[section] = {n: item for n, item in suite[section].items() if n in sizes}
    return suite


def items(suites: Path) -> Iterator[str]:
    """Yield the names of the slices and tasks of suites, which are those of entries of the cache."""
    for path in suites.glob("*.yaml"):
        suite = yaml.safe_load(path.read_text())
        for section in ("slices", "tasks", "generation_tasks"):
            yield from suite.get(section, {})


def _absolute(content: Any, folder: Path) -> Any:
    """Return a suite whose files are absolute paths."""
    if isinstance(content, dict):
        return {
            key: [str(folder / name) for name in value]
            if key == "files"
            else _absolute(value, folder)
            for key, value in content.items()
        }
    return content


def _suites(folder: Path, content: dict[str, Any]) -> None:
    folder.mkdir(parents=True)
    for name, suite in content.items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(suite, sort_keys=False))


def _config(path: Path, config: dict[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(config, sort_keys=False))
    return path
