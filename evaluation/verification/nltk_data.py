"""NLTK data that instruction verifiers read: prefill fetches it, jobs then read it offline.

`punkt_tab` splits sentences and words, `stopwords` is a list, and the tagger finds verbs.
"""

import shutil
import zipfile
from collections.abc import Iterable
from pathlib import Path

from evaluation.errors import SourceError
from evaluation.settings.generation import GenerationTask
from evaluation.settings.provided import ProviderTask

RESOURCES = {
    "punkt_tab": "tokenizers/punkt_tab/english",
    "stopwords": "corpora/stopwords/english",
    "averaged_perceptron_tagger_eng": "taggers/averaged_perceptron_tagger_eng",
}
"""Path of each resource (of its English part) below a folder of NLTK data."""

NEEDED_BY = {
    "change_case:capital_word_frequency": ("punkt_tab",),
    "length_constraints:number_sentences": ("punkt_tab",),
    "format:title_case": ("punkt_tab",),
    "ratio:stop_words": ("stopwords",),
    "words:keywords_specific_position": ("punkt_tab",),
    "words:start_verb": ("punkt_tab", "averaged_perceptron_tagger_eng"),
    "words:words_position": ("punkt_tab",),
}
"""Resources by instruction; an instruction that is not listed needs none."""

_OF_KINDS = {"ifeval": ("punkt_tab",), "ifbench": tuple(RESOURCES)}


def needed_by_tasks(tasks: Iterable[GenerationTask | ProviderTask]) -> tuple[str, ...]:
    """Return the resources that verifiers of tasks, or a provider's metrics, may read."""
    kinds = set()
    for task in tasks:
        if isinstance(task, ProviderTask):
            kinds |= {kind for kind in _OF_KINDS if kind in task.task.lower()}
        else:
            kinds |= {verifier.kind for verifier in task.verifiers.values()}
    wanted = {resource for kind in kinds for resource in _OF_KINDS.get(kind, ())}
    return tuple(resource for resource in RESOURCES if resource in wanted)


def fetch(folder: Path, resources: Iterable[str]) -> None:
    """Put missing resources into a folder, from this machine's NLTK data or else NLTK's server.

    Args:
        folder: A folder of NLTK data, made if it does not exist.

    Raises:
        SourceError: When neither has a resource; states what to do on a machine without network.
    """
    for resource in missing(folder, resources):
        if not _copied(resource, folder):
            import nltk

            folder.mkdir(parents=True, exist_ok=True)
            nltk.download(resource, download_dir=str(folder), quiet=True)
        if missing(folder, [resource]):
            raise SourceError(
                f"NLTK's {resource} cannot be downloaded to {folder}; put it there by hand, as "
                f"{RESOURCES[resource]}, or run prefill where NLTK_DATA names a folder that has it"
            )


def missing(folder: Path, resources: Iterable[str]) -> tuple[str, ...]:
    """Return the resources that a folder lacks, in the same order."""
    return tuple(resource for resource in resources if not (folder / RESOURCES[resource]).exists())


def use(folder: Path) -> None:
    """Make NLTK read from one folder only."""
    import nltk

    nltk.data.path[:] = [str(folder)]


def _copied(resource: str, folder: Path) -> bool:
    """Copy a resource from a folder of NLTK's search path, unpacked or an archive; return if found."""
    import nltk

    kind, name, *_ = RESOURCES[resource].split("/")
    target = folder / kind / name
    for place in map(Path, nltk.data.path):
        if (place / RESOURCES[resource]).exists():
            shutil.copytree(place / kind / name, target, dirs_exist_ok=True)
            return True
        archive = place / kind / f"{name}.zip"
        if archive.is_file():
            with zipfile.ZipFile(archive) as packed:
                packed.extractall(target.parent)
            return True
    return False
