"""Check whether the files that a cache entry was made from are still the same.

Prefill notes a file's status (size and times) before it reads the file, and compares it afterwards. A
file that changed in between is refused. Later, a file with the same status counts as unchanged. Where
the status differs, as for a copy or after `touch`, the checksum decides. Files that were not read do
not count: a slice often reads only the first files of a large mirror.
"""

import logging
from collections.abc import Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

from evaluation.errors import SourceError
from evaluation.files import file_checksum
from evaluation.prefill.files import unreadable
from evaluation.prefill.hub_commits import COMMITS, note_commit, resolved_commit
from evaluation.prefill.mirrors import mirror_of
from evaluation.prefill.remembered_hashes import remember_hashes, remembered_hashes
from evaluation.prefill.sources import FilesRead, ResolvedSplit
from evaluation.providers.adapters.mirror_files import (
    FileStamp,
    mirrored_files,
    parts_of,
    status_of,
)
from evaluation.providers.adapters.task_files import user_files
from evaluation.providers.render import ReadSource, TaskInfo
from evaluation.records import FOLDER
from evaluation.settings.plan import StagePlan

log = logging.getLogger(__name__)

_LARGE = 10**9
"""Bytes of a file whose checksum takes so long that it is logged."""


class ReadFile(NamedTuple):
    """A file as it was read."""

    path: str
    status: FileStamp
    checksum: str


class Checksums:
    """Checksums of files, each computed once, and stored with the file's status.

    They are stored in `<results>/.made/sources.json`, as the cache may be another user's and read-only.
    If two processes write at once, checksums of one may be lost; they are then computed again.
    """

    def __init__(self, results: Path) -> None:
        self._path = results / FOLDER / "sources.json"
        self._stored = remembered_hashes(self._path)
        self._fresh: dict[str, tuple[FileStamp, str]] = {}

    def of(self, path: Path, status: FileStamp) -> str:
        """Return a file's stored checksum if its status is the same, else its content's."""
        stored = self._stored.get(str(path))
        if stored is not None and stored[0] == status:
            return stored[1]
        if status.size >= _LARGE:
            log.warning("%s: computing its checksum (%.1f GB)", path, status.size / 1e9)
        checksum = file_checksum(path)
        if status_of(path) == status:
            self._stored[str(path)] = self._fresh[str(path)] = status, checksum
        return checksum

    def keep(self) -> None:
        """Store new checksums; log a warning where this user may not write."""
        if self._fresh:
            hashes = {**remembered_hashes(self._path), **self._fresh}
            remember_hashes(self._path, hashes, "checksums of data")
        self._fresh = {}


def state_of(reading: FilesRead, checksums: Checksums) -> dict[str, Any]:
    """Return path, status and checksum of each file that was read, and whether all were.

    Raises:
        SourceError: A file has changed since.
    """
    files = [_check_read(*file, checksums) for file in reading.files.items()]
    return {"files": files, "ended": reading.ended}


def _check_read(path: Path, before: FileStamp, checksums: Checksums) -> ReadFile:
    try:
        checksum, after = checksums.of(path, before), status_of(path)
    except OSError as error:
        raise unreadable(path, error) from None
    if after != before:
        raise SourceError(
            f"{path} was changed while it was read; wait until whoever writes it is done, and run the "
            "same command again"
        )
    return ReadFile(str(path), before, checksum)


def are_unchanged(now: Sequence[Sequence[Path] | None], known: Any, checksums: Checksums) -> bool:
    """Return whether sources have not changed since something was made from them.

    Args:
        now: The files that each source would be read from now; None for the hub, which is not
            queried.
        known: The stored state of each, as `state_of` returns it, or another version; None where no
            source was local.
        checksums: Used where a file's status differs.
    """
    if not isinstance(known, list):
        return all(files is None for files in now)
    try:
        same = len(now) == len(known) and all(
            files is None or _is_unchanged(files, one, checksums)
            for files, one in zip(now, known, strict=True)
        )
    except (OSError, TypeError, ValueError, LookupError):  # deleted, or stored by another version
        same = False
    checksums.keep()
    return same


def _is_unchanged(files: Sequence[Path], known: Mapping[str, Any], checksums: Checksums) -> bool:
    seen = [
        ReadFile(path, FileStamp(*status), checksum) for path, status, checksum in known["files"]
    ]
    parts = chain.from_iterable(map(parts_of, files))
    paths = list(parts if known["ended"] else islice(parts, len(seen)))
    if [path.name for path in paths] != [Path(one.path).name for one in seen]:
        return False
    pairs = [(one, path, status_of(path)) for one, path in zip(seen, paths, strict=True)]
    if any(one.status.size != status.size for one, _, status in pairs):
        return False
    return all(
        (record.path, record.status) == (str(path), status)
        or record.checksum == checksums.of(path, status)
        for record, path, status in pairs
    )


class Sources:
    """The sources of an entry: its `origins`, or the files that a provider reports to have read.

    `checksums` are shared with other sources; None: those of the plan's results.
    """

    def __init__(
        self, plan: StagePlan, origins: Sequence[ResolvedSplit], checksums: Checksums | None = None
    ) -> None:
        self.origins, self._mirrors = origins, plan.config.mirrors
        self._checksums = checksums or Checksums(Path(plan.config.results))
        self._commits = Path(plan.config.cache) / COMMITS

    def are_as(self, known: Any) -> bool:
        """Return whether the sources are as meta.json has them, perhaps by another version.

        It raises as `locate`.
        """
        try:
            now = [origin.files for origin in self.origins] or self._provided(known)
        except (TypeError, LookupError):  # stored by another version
            return False
        return are_unchanged(now, known, self._checksums)

    def describe(self) -> dict[str, Any]:
        """Return dataset, revision, commit (None for local files) and state of the files.

        Raises:
            SourceError: A file changed while it was read.
        """
        source = self.origins[0].source
        on_hub = any(origin.files is None for origin in self.origins)
        commit = resolved_commit(source) if on_hub else None
        if commit is not None:
            note_commit(self._commits, source, commit)
        state = [self._origin_state(origin) for origin in self.origins]
        self._checksums.keep()
        return {
            "dataset": source.dataset,
            "revision": source.revision,
            "resolved": commit,
            "state": state,
        }

    def describe_provided(self, info: TaskInfo) -> dict[str, Any]:
        """Return the keys of `describe` for data that a provider has read."""
        state = [self._provided_state(one) for one in info.read]
        self._checksums.keep()
        name = ", ".join(info.datasets)
        return {"dataset": name, "revision": None, "resolved": None, "state": state}

    def _origin_state(self, origin: ResolvedSplit) -> dict[str, Any]:
        if origin.files is None:
            return {"kind": "hub"}
        kind = "files" if origin.source.dataset is None else "mirror"
        return {"kind": kind, **state_of(origin.reading, self._checksums)}

    def _provided(self, known: Any) -> list[Sequence[Path] | None]:
        """Return the files that a provider would read now from each source that it has read."""
        paths: list[Sequence[Path] | None] = []
        for record in known or ():
            if record["kind"] == "tasks":
                paths.append(user_files(Path(record["dataset"])))
            else:
                root = mirror_of(record["dataset"], self._mirrors)
                paths.append(None if root is None else mirrored_files(root, record["config"]))
        return paths

    def _provided_state(self, read: ReadSource) -> dict[str, Any]:
        about = {"dataset": read.dataset, "config": read.config}
        if read.files is None:
            return {"kind": "hub", **about}
        reading = FilesRead(
            {Path(path): FileStamp(*status) for path, status in read.files}, ended=True
        )
        kind = "mirror" if read.kind == "data" else read.kind
        return {"kind": kind, **about, **state_of(reading, self._checksums)}
