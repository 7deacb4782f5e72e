"""The processes of a session."""

from pathlib import Path


def of_session(session: int) -> set[int]:
    """Return those that are not dead."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.add(int(path.parent.name))
    return found
