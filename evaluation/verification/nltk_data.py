"""Data of NLTK that instruction verifiers read: fetched at prefill, read without a network after it.

`punkt_tab` splits sentences and words, `stopwords` is a list, the tagger finds verbs.
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
"""Where each resource is, below a folder of NLTK data; of several languages the one that is read."""

NEEDED_BY = {
    "change_case:capital_word_frequency": ("punkt_tab",),
    "length_constraints:number_sentences": ("punkt_tab",),
    "format:title_case": ("punkt_tab",),
    "ratio:stop_words": ("stopwords",),
    "words:keywords_specific_position": ("punkt_tab",),
    "words:start_verb": ("punkt_tab", "averaged_perceptron_tagger_eng"),
    "words:words_position": ("punkt_tab",),
}
"""Resources by instruction; those not named need none."""

_OF_KINDS = {"ifeval": ("punkt_tab",), "ifbench": tuple(RESOURCES)}


def needed_by_tasks(tasks: Iterable[GenerationTask | ProviderTask]) -> tuple[str, ...]:
    """Return the resources that the verifiers of tasks may read, or a provider's metrics.

    Args:
        tasks: Generation tasks of the suite.

    Returns:
        Names of resources, in the order of RESOURCES.
    """
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
        folder: A folder of NLTK data, made if it is not there.
        resources: Names of resources.

    Raises:
        SourceError: When neither has one; names what to do on a machine without network.
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
    """Return the resources that a folder lacks.

    Args:
        folder: A folder of NLTK data.
        resources: Names of resources.

    Returns:
        Names of those that are not there, in the same order.
    """
    return tuple(resource for resource in resources if not (folder / RESOURCES[resource]).exists())


def use(folder: Path) -> None:
    """Have NLTK look into one folder and nowhere else from now on.

    Args:
        folder: A folder of NLTK data.
    """
    import nltk

    nltk.data.path[:] = [str(folder)]


def _copied(resource: str, folder: Path) -> bool:
    """Whether a folder that NLTK knows of had it, unpacked or as an archive."""
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
