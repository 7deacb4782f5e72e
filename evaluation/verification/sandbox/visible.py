"""What a sandboxed program may read: Python's standard library, numpy and system libraries."""

import os
import sys
import sysconfig

_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/etc/ld.so.cache")
_PACKAGES = ("site-packages", "dist-packages")


def visible_paths() -> list[str]:
    """Files and folders, outer ones first; none that the machine lacks."""
    paths = {*_LIBRARIES, *_standard_library(), *_numpy()}
    return sorted(
        (path for path in paths if os.path.exists(path)), key=lambda path: (len(path), path)
    )


def hidden_folders() -> list[str]:
    """Other packages inside the standard library's folder."""
    inside = (os.path.join(path, name) for path in _standard_library() for name in _PACKAGES)
    return [path for path in inside if os.path.isdir(path)]


def _standard_library() -> set[str]:
    return {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}


def _numpy() -> set[str]:
    numpy = sys.modules.get("numpy")
    if numpy is None or numpy.__file__ is None:
        return set()
    folder = os.path.dirname(numpy.__file__)
    return {folder, f"{folder}.libs"}
