"""All of Nanotron's model classes that can be read: the files of this folder that define one."""

import functools
import importlib
import pkgutil

from evaluation.checkpoints import nanotron_classes as folder
from evaluation.checkpoints.nanotron_classes.base import NanotronClass


@functools.cache
def nanotron_classes() -> tuple[NanotronClass, ...]:
    """Return the classes in the order of their files' names."""
    names = {module.name for module in pkgutil.iter_modules(folder.__path__)} - {"base", "registry"}
    modules = [importlib.import_module(f"{folder.__name__}.{name}") for name in sorted(names)]
    return tuple(module.NANOTRON_CLASS for module in modules)
