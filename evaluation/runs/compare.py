"""Two runs compared, checkpoint by checkpoint, with the paired statistics of the bridge."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from evaluation.bridge.delta import Delta, leading_deltas
from evaluation.bridge.deltas import compare
from evaluation.bridge.pairing import check_comparable
from evaluation.errors import BridgeError
from evaluation.results.read import Results, read_results, tiers_in
from evaluation.runs.find import Run
from evaluation.runs.leads import Lead, leads
from evaluation.runs.matching import Match, Matching, matches, paired_stages
from evaluation.wording import first_few

ACROSS = (
    "the tokenizers differ, so only bits per byte and the credit of questions and answers are "
    "compared; a slice's text is cut into other blocks on each side, so its intervals are those of two "
    "samples, not of pairs, and wider"
)


@dataclass(frozen=True, kw_only=True)
class ComparedStage:
    """A stage of A and one of B; `deltas` of each match, `leads` over all of them."""

    stages: tuple[str, str]
    how: Matching
    matched: Sequence[Match]
    across_tokenizers: bool
    notes: Sequence[str]
    deltas: Sequence[Sequence[Delta]]
    leads: Sequence[Lead]


@dataclass(frozen=True, kw_only=True)
class ComparedRuns:
    """`notes` are on stages that could not be compared."""

    ours: Run
    theirs: Run
    stages: Sequence[ComparedStage]
    notes: Sequence[str]


def compare_runs(ours: Run, theirs: Run, how: Matching) -> ComparedRuns:
    """Compare the stages that both have, at the checkpoints that meet.

    A stage without such checkpoints is noted, if another has some.

    Raises:
        ResultsError: a file is missing or damaged.
        BridgeError: no checkpoints meet, or two that do must not be compared.
    """
    compared, apart = [], []
    for stages in paired_stages(ours, theirs):
        sides = ours.stages[stages[0]], theirs.stages[stages[1]]
        try:
            matched = matches(*sides, how, " and ".join(dict.fromkeys(stages)))
        except BridgeError as error:
            apart.append(str(error))
            continue
        compared.append(_stage(stages, matched, how))
    if not compared:
        raise BridgeError("; ".join(apart))
    return ComparedRuns(
        ours=ours, theirs=theirs, stages=compared, notes=[*apart, *_alone(ours, theirs)]
    )


def _alone(ours: Run, theirs: Run) -> Iterator[str]:
    if len(ours.stages) == len(theirs.stages) == 1:
        return
    for side, other, label in ((ours, theirs, "A"), (theirs, ours, "B")):
        for name in side.stages:
            if name not in other.stages:
                yield f"{name}: only {label} has it"


def _stage(stages: tuple[str, str], matched: Sequence[Match], how: Matching) -> ComparedStage:
    """The results of one match at a time are in memory, as there may be many."""
    deltas: list[Sequence[Delta]] = []
    notes: dict[str, None] = dict.fromkeys(_notes_on_tokens(matched))
    across, first = False, None
    for match in matched:
        sides = _read(match)
        across = across or _tokenizers(sides[0]) != _tokenizers(sides[1])
        first = first or sides
        for own, earliest in zip(sides, first, strict=True):
            if own is not earliest:  # what holds for all of them is over the same items
                check_comparable(own, earliest)
        found = compare(*sides, across_tokenizers=across)
        notes |= dict.fromkeys(check_comparable(*sides, across_tokenizers=across))
        deltas.append(found)
    if across:
        notes |= {ACROSS: None}
    return ComparedStage(
        stages=stages,
        how=how,
        matched=matched,
        across_tokenizers=across,
        notes=list(notes),
        deltas=[[_lean(delta) for delta in own] for own in deltas],
        leads=leads([_led_in(own) for own in deltas]),
    )


def _tokenizers(side: Results) -> set[str | None]:
    return {tier.file.tokenizer.identity for tier in side.tiers.values()}


def _read(match: Match) -> tuple[Results, Results]:
    """Return both checkpoints' results; raise BridgeError where their suites have no tier, or another."""
    ours, theirs = match.ours.folder, match.theirs.folder
    if ours.samefile(theirs):
        raise BridgeError(f"{ours} is in both runs; name two different ones")
    mine, other = tiers_in(ours), tiers_in(theirs)
    if mine != other:
        alone = [f"{ours} has {t}" for t in mine if t not in other]
        alone += [f"{theirs} has {t}" for t in other if t not in mine]
        raise BridgeError(
            f"{match.label}: the suites differ: {alone[0]}, which the other side has not; score the "
            "same suites on both"
        )
    sides = read_results(ours, mine), read_results(theirs, other)
    _check_items(match, *sides)
    return sides


def _check_items(match: Match, ours: Results, theirs: Results) -> None:
    """Raise BridgeError, naming all items that one side lacks."""
    for name, mine in ours.tiers.items():
        other = theirs.tiers[name]
        alone = [
            [one for one in a.items if one not in b.items]
            for a, b in ((mine, other), (other, mine))
        ]
        if mine.tier.rates or not any(alone):
            continue
        if len(alone[0]) == len(mine.items):
            raise BridgeError(
                f"{match.label}: no {mine.tier.item} in common: {ours.folder} has "
                f"{first_few(alone[0], 4)}, {theirs.folder} has {first_few(alone[1], 4)}; score the same suites"
            )
        folders = (ours.folder, theirs.folder)
        lone = [
            f"{f} has {first_few(n, 4)} alone" for f, n in zip(folders, alone, strict=True) if n
        ]
        raise BridgeError(
            f"{match.label}: the suites differ: {'; '.join(lone)}; score the same suites on both"
        )


def _notes_on_tokens(matched: Iterable[Match]) -> Iterator[str]:
    """Yield a note where matched checkpoints have seen different amounts of text."""
    for match in matched:
        a, b = match.ours.tokens, match.theirs.tokens
        if a is not None and b is not None and abs(a - b) > 0.01 * max(a, b):
            yield (
                f"matched checkpoints have not seen as many tokens: at {match.label} A has seen {a:,}, "
                f"B {b:,}"
            )
            return


def _lean(delta: Delta) -> Delta:
    """Return a delta without what each item contributes, which takes much memory over all steps."""
    return replace(delta, estimate=replace(delta.estimate, spread=None, parts={}))


def _led_in(deltas: Sequence[Delta]) -> list[Delta]:
    """Return the deltas that leads are stated in: tested metrics, headlines, first secondary metrics."""
    metrics = {(delta.tier, delta.metric) for delta in deltas if delta.primary}
    metrics |= {(name, one) for name in {d.tier for d in deltas} for one in leading_deltas(name)}
    return [delta for delta in deltas if (delta.tier, delta.metric) in metrics]
