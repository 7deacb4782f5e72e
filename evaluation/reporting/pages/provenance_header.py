"""The header of a page, which shows where its numbers come from, in a line or two.

All of it is read from the page's inputs, so a page that is made again shows the same. A browser reads
from the file when the page was written.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path

from evaluation.files import fingerprint
from evaluation.reporting.tables.stage_results import Scored, StageResults
from evaluation.results.tier_files import Counts
from evaluation.settings.effective import origin_of
from evaluation.version import code_commit, commit_of

Header = list[tuple[str, str]]
"""The name and the text of each entry."""

code_of_now = cache(code_commit)


def stage_header(stage: StageResults) -> Header:
    """Return the header of a stage's page; checkpoint and items are those of the step it is about."""
    scored = stage.steps.get(stage.chosen) if stage.chosen is not None else None
    named = stage.plan.label(stage.chosen) if stage.chosen is not None else ""
    return [
        ("run", Path(stage.plan.config.results).name),
        ("stage", stage.plan.name),
        *([("checkpoint", f"{named}, {_identity(scored)}")] if scored else []),
        *([("bridge", _identity(stage.bridge))] if stage.bridge else []),
        *_shared([stage]),
        *([("items used", _items([scored]))] if scored else []),
    ]


def front_header(stages: Mapping[str, StageResults]) -> Header:
    """Return the header of the page of all stages; items are those of each stage's last step."""
    results = list(stages.values())
    last = [stage.last for stage in results if stage.last is not None]
    return [
        ("run", Path(results[0].plan.config.results).name),
        ("stages", ", ".join(f"{name} ({_steps(stage)})" for name, stage in stages.items())),
        *_shared(results),
        *([("items used", _items(last))] if last else []),
    ]


def _steps(stage: StageResults) -> str:
    count = len(stage.steps)
    return f"{count} checkpoint{'' if count == 1 else 's'}"


def _shared(stages: Sequence[StageResults]) -> Header:
    files = [
        tier.file
        for stage in stages
        for side in (*stage.steps.values(), *([stage.bridge] if stage.bridge else []))
        for tier in side.results.tiers.values()
    ]
    packages = {name: versions for file in files for name, versions in file.packages.items()}
    entries = [
        ("configuration", _configuration(stages)),
        ("code", code_of_now() or "not under version control"),
        ("device", _distinct(file.gpu or file.device for file in files)),
        ("dtype", _distinct(file.dtype for file in files)),
        ("packages", packages_in_words(dict(sorted(packages.items())))),
        ("tokenizer", stages[0].plan.tokenizer.name),
    ]
    return [(name, text) for name, text in entries if text]


def packages_in_words(packages: Mapping[str, Iterable[str]]) -> str:
    """Return packages with their versions in a line, such as `numpy 2.1 and 2.2, torch 2.8`."""
    return ", ".join(f"{name} {' and '.join(versions)}" for name, versions in packages.items())


def _distinct(values: Iterable[str | None]) -> str:
    return ", ".join(dict.fromkeys(filter(None, values)))


def _configuration(stages: Sequence[StageResults]) -> str:
    """Return the fingerprint of the stages' suites, objectives and steps, and the commit they are from."""
    requested = [
        [
            stage.plan.suite.model_dump(mode="json"),
            [objective.model_dump(mode="json") for objective in stage.plan.stage.objective],
            list(stage.requested),
        ]
        for stage in stages
    ]
    config = stages[0].plan.config
    suites = commit_of(Path(config.suites))
    commit = origin_of(config) or ""
    origin = commit if " at " in commit else f"suites at {suites}" if suites else None
    return f"{fingerprint(requested)[:12]}{f' ({origin})' if origin else ''}"


def _identity(scored: Scored) -> str:
    header = scored.results.header
    return f"{scored.results.label} ({header.checkpoint_identity[:16]})"


def _items(scored: Iterable[Scored]) -> str:
    """Return the units of each tier, e.g. `320 blocks, 4,000 questions`."""
    counts: dict[str, int] = {}
    for one in scored:
        for tier in one.results.tiers.values():
            items = tier.file.items
            if isinstance(items, Counts):
                counts[tier.tier.unit] = counts.get(tier.tier.unit, 0) + items.used
    return ", ".join(f"{count:,} {unit}" for unit, count in counts.items())
