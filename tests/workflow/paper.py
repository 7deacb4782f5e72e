"""A world on paper: all that a plan is made of, and nothing that could be scored."""

import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.histories.warm import run_python

ROOT = Path(__file__).resolve().parents[2]
SUITES = {
    "base": {"slices": {"text": {"dataset": "made/text"}}},
    "chat": {
        "extends": "base",
        "probes": {
            "colour": {
                "category": "concise",
                "messages": [{"role": "user", "content": "Name a colour."}],
                "checks": [{"check": "no_chat_artifacts"}],
            }
        },
    },
}


@dataclass(frozen=True)
class Paper:
    """Stages by any name, with steps 10 and 20 of each on disk."""

    folder: Path
    stages: dict[str, dict[str, Any]]
    top: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.folder / "suites").mkdir(parents=True)
        for name, suite in SUITES.items():
            (self.folder / "suites" / f"{name}.yaml").write_text(yaml.safe_dump(suite))
        self.config.write_text(yaml.safe_dump(self.content, sort_keys=False))
        for number in range(len(self.stages)):
            for step in (10, 20):
                checkpoint = self.folder / "ckpts" / str(number) / str(step)
                checkpoint.mkdir(parents=True)
                (checkpoint / "config.json").write_text('{"vocab_size": 9}')

    @property
    def config(self) -> Path:
        return self.folder / "config.yaml"

    @property
    def content(self) -> dict[str, Any]:
        stages = {
            name: {"checkpoints": f"ckpts/{number}", "steps": [10, 20], "suites": ["base"], **keys}
            for number, (name, keys) in enumerate(self.stages.items())
        }
        content = {
            "results": "results",
            "cache": "cache",
            "suites": "suites",
            "tokenizer": {"name": "made/tokenizer"},
            "sequence_length": 64,
            "stages": stages,
        }
        return {**content, **self.top}

    def snakemake(
        self, *arguments: str, snakefile: str = "workflow/Snakefile", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        command = ["-m", "snakemake", *arguments, "-s", str(ROOT / snakefile)]
        return self._run([*command, "--configfile", "config.yaml"], variables)

    def bare(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Snakemake without a configuration."""
        return self._run(["-m", "snakemake", *arguments, "-s", str(ROOT / "Snakefile")], {})

    def evaluation(self, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return self._run(["-m", "evaluation", *arguments], variables)

    def _run(
        self, arguments: list[str], variables: dict[str, str]
    ) -> subprocess.CompletedProcess[str]:
        variables = {"EVALUATION_CONFIG": str(self.config), **variables}
        return run_python(arguments, self.folder, **variables)


def refused(done: subprocess.CompletedProcess[str]) -> str:
    """What a command says that ends with exit code 1 and no traceback."""
    said = done.stdout + done.stderr
    assert done.returncode == 1, said
    assert "Traceback (most" not in said
    return said
