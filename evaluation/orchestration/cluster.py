"""Whether a run that is to use Slurm can: asked once, before its first job is submitted."""

import getpass
import re
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

from evaluation.errors import EvaluationError

PLACEHOLDER = "YOUR_ACCOUNT"
"""The account in the profile as it is shipped."""


def check_cluster(workflow: Any) -> None:
    """Called as a run starts; does nothing where jobs run on this machine.

    Raises:
        EvaluationError: if there is no sbatch, or if the account is the placeholder and the cluster
            looks at accounts.
    """
    executor = getattr(workflow.scheduler, "_executor", None)
    if not hasattr(executor, "run_uuid"):
        return
    if shutil.which("sbatch") is None:
        raise EvaluationError(
            "sbatch: no such command on this machine; start Snakemake on a login node of the "
            "cluster, or without `--profile slurm_profile` (with `--cores N`) to run all jobs here"
        )
    if PLACEHOLDER in _accounts(workflow.resource_settings) and _accounts_count():
        yours = f" (yours: {', '.join(found)})" if (found := known_accounts()) else ""
        raise EvaluationError(
            f"slurm_account is {PLACEHOLDER}, as shipped: put the account that your jobs are "
            f"charged to{yours} into the profile's config.yaml, under default-resources"
        )


def known_accounts() -> list[str]:
    """The accounts that this user may charge, as far as Slurm says."""
    user = getpass.getuser()
    said = _said("sacctmgr", "-n", "-P", "-s", "list", "user", user, "format=account")
    return sorted(set(said.split()))


def _accounts(settings: Any) -> Iterator[str]:
    for resources in (settings.default_resources or {}, *settings.overwrite_resources.values()):
        if "slurm_account" in resources:
            yield str(resources["slurm_account"].raw)


def _accounts_count() -> bool:
    """Whether this cluster keeps accounts; without accounting any name will do."""
    none = r"AccountingStorageType\s*=\s*(accounting_storage/none|\(null\))"
    return not re.search(none, _said("scontrol", "show", "config"))


def _said(*command: str) -> str:
    """What a command prints; nothing if it cannot say."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
