"""What a group gets wrong and no drawing finds: each is refused in a sentence that names the file or key."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file

from tests.tables import cases, table
from tests.workflow.world import World

CASES = [one for section in table("bad_input/cases") for one in cases("bad_input/cases", section)]
COMMANDS = {"prefill": "--stage stage1", "score": "--stage stage1 --step 10", "status": ""}


@pytest.mark.parametrize("case", [pytest.param(one.values, id=one.id) for one in CASES])
def test_a_mistake_is_named(case: tuple[str, ...], world: World) -> None:
    *changes, command, words = case
    for change in changes:
        if change.startswith("$ "):
            line = ["bash", "-ec", "shopt -s globstar; " + change[2:]]
            subprocess.run(line, cwd=world.folder, check=True)
        else:
            eval(change, {"world": world, "spoilt": spoilt, **ways(world)})
    name, *options = command.split()
    done = world.evaluation(
        name,
        *(
            options
            if "--stage" in options or name == "compare"
            else [*COMMANDS[name].split(), *options]
        ),
    )
    said = done.stdout + done.stderr
    assert done.returncode in (1, 3), said
    assert "Traceback" not in said
    error = next(line for line in reversed(said.splitlines()) if line.startswith("error: "))
    assert words in error


def spoilt(path: Path) -> None:
    """A weight becomes NaN."""
    with safe_open(path, "pt") as file:
        metadata = file.metadata()
    save_file(
        {k: torch.full_like(v, torch.nan) for k, v in load_file(path).items()}, path, metadata
    )


def ways(world: World) -> dict[str, Any]:
    """Changes of a world that several cases make."""

    def model(**keys: Any) -> None:
        path = world.folder / "ckpts/stage1/10/model_config.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | keys))

    def own_tokenizer(more: int = 0) -> None:
        """The world's own copy, with that many more tokens than the model has."""
        (known,) = {plan.tokenizer.name for plan in world.plans.values()}
        world.change(tokenizer={"name": "tokenizer", "also_known_as": [known]})
        path = world.folder / "tokenizer/tokenizer.json"
        content = json.loads(path.read_text())
        form = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
        content["added_tokens"] += [
            {"id": 320 + n, "content": f"<new{n}>", **form} for n in range(more)
        ]
        path.write_text(json.dumps(content))

    return {
        "model": model,
        "own_tokenizer": own_tokenizer,
        "stage1": lambda **keys: world.change_stage("stage1", **keys),
        "command": world.evaluation,
    }
