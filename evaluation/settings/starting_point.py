"""A configuration to start from: stages, bridges, objectives, tokenizer and texts as a user names them."""

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from evaluation.errors import ConfigError
from evaluation.settings.steps import step_of_folder

OWN = "own"
"""Name of the suite of the user's own texts."""

SUITES = ("stage1_ppl_slices", "stage1_cf_core")

HEAD = """\
# Written by `init`. In the folder above, run
#
#     snakemake prefill --cores 4      # needs the internet
#     snakemake all --cores 4          # scores, and writes eval_results
#
# On a cluster, use `--profile slurm_profile` instead of `--cores 4`. Tokenizer and sequence length
# are those of the checkpoints unless they are set.
"""

OBJECTIVES = ("tier3 improve 0", "tier2 keep 0.02")
"""What a stage with a bridge is to do unless the user says otherwise."""


@dataclass(frozen=True, kw_only=True)
class StartingPoint:
    """What a new configuration says.

    `stages` are folders of checkpoints by name, in training order. `bridge` is the checkpoint that the first one
    is compared with; each later one is compared with the stage before it. `objectives` are written as
    `tier3 improve 0.01` or `tier2 hq keep 0.02`. `texts` are patterns of text files by name of the slice.
    """

    stages: Mapping[str, str]
    suites: Sequence[str] = SUITES
    bridge: str | None = None
    objectives: Sequence[str] = ()
    tokenizer: str | None = None
    texts: Mapping[str, str] = field(default_factory=dict)

    def configuration(self) -> dict[str, Any]:
        """Return the configuration's content.

        Raises:
            ConfigError: An objective is not of the form, or there is none that could be judged.
        """
        wanted = [_objective(text) for text in self.objectives or OBJECTIVES]
        if self.objectives and len(self.stages) == 1 and self.bridge is None:
            raise ConfigError(
                "--objective: a single stage has nothing to be compared with; name a checkpoint by --bridge"
            )
        suites = [*self.suites, *([OWN] if self.texts else [])]
        content: dict[str, Any] = {"results": "eval_results", "cache": "eval_data"}
        if self.tokenizer is not None:
            content["tokenizer"] = {"name": _tokenizer(self.tokenizer)}
        content["stages"] = {}
        before = None if self.bridge is None else {"path": _absolute(self.bridge)}
        for name, folder in self.stages.items():
            stage: dict[str, Any] = {"checkpoints": _absolute(folder), "steps": "all"}
            stage["suites"] = list(suites)
            if before is not None:
                stage |= {"bridge": dict(before), "objective": [dict(one) for one in wanted]}
            content["stages"][name] = stage
            before = {"stage": name}
        return content

    def text(self) -> str:
        """Return the configuration's file."""
        body = yaml.safe_dump(
            self.configuration(), sort_keys=False, allow_unicode=True, width=10**6
        )
        return HEAD + body

    def suite(self) -> str | None:
        """Return the file of the suite of own texts; None without any.

        Raises:
            ConfigError: A pattern matches no file.
        """
        if not self.texts:
            return None
        slices = {}
        for name, pattern in self.texts.items():
            if not glob.glob(os.path.expandvars(os.path.expanduser(pattern)), recursive=True):
                raise ConfigError(
                    f"--text {name}={pattern}: nothing is at {pattern}; correct the path"
                )
            slices[name] = {"files": [_absolute(pattern)]}
        return yaml.safe_dump({"slices": slices}, sort_keys=False, allow_unicode=True, width=10**6)

    def notes(self) -> list[str]:
        """Return a sentence for each folder without checkpoints that can be seen from here."""
        notes = {name: folder_note(folder) for name, folder in self.stages.items()}
        return [f"stage {name}: {note}" for name, note in notes.items() if note is not None]


def folder_note(folder: str) -> str | None:
    """Return what a folder of checkpoints lacks, as far as it can be seen from here."""
    path = Path(os.path.expandvars(os.path.expanduser(folder)))
    if not path.is_dir():
        return f"{folder} is not a folder on this machine"
    if not any(step_of_folder(entry.name) is not None for entry in path.iterdir()):
        return f"{folder} has no checkpoints yet"
    return None


def _objective(text: str) -> dict[str, Any]:
    """Read `tier3 improve 0.01`, or `tier2 hq keep 0.02` of a group."""
    words = text.split()
    wants = [word for word in words if word in ("improve", "keep")]
    try:
        margin = float(words[-1])
        place = words.index(wants[0])
    except (ValueError, IndexError):
        raise ConfigError(
            f"--objective {text!r}: write tier, group if any, `improve` or `keep`, and the margin, as "
            "'tier3 improve 0.01' or 'tier2 hq keep 0.02'"
        ) from None
    group = " ".join(words[1:place])
    return {
        "tier": words[0],
        **({"group": group} if group else {}),
        "want": wants[0],
        "margin": int(margin) if margin == int(margin) else margin,
    }


def _tokenizer(name: str) -> str:
    """Return a hub id as it is, and a folder by a path that holds from any folder."""
    return _absolute(name) if os.path.isdir(name) else name


def _absolute(path: str) -> str:
    """Return a path that holds from any folder; what begins with a variable stays as it is."""
    return path if path[:1] in "$~" else os.path.abspath(path)
