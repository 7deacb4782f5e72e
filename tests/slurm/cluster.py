"""A real Slurm on one machine: munged, slurmctld and five slurmd. Needs root and Debian's packages.

Every node is a process namespace of its own, so that killing its first process takes all of its jobs with
it, as a power cut does.

    python -m tests.slurm.cluster up|down
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

from tests.histories.warm import wait_for

FOLDER = Path("/run/evaluation-slurm")
"""Fixed, since the configuration must be found under /etc/slurm: the plugin's inner srun drops
SLURM_CONF from its environment. One cluster a machine."""
ETC = Path("/etc/slurm")
NODES = ("gpu1", "gpu2", "gpu3", "gpu4", "serial1")
CONFIGURATION = {
    "slurm.conf": Path(__file__).with_name("slurm.conf").read_text(),
    # Links to /dev/null are enough for Slurm to hand out CUDA_VISIBLE_DEVICES.
    "gres.conf": "AutoDetect=off\nNodeName=gpu[1-4] Name=gpu Type=a100 File=FOLDER/nvidia[0-3] "
    "Flags=nvidia_gpu_env\n",
    "cgroup.conf": "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n",
}
# Daemons lie where the PATH of a bare environment does not look.
os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"


def missing() -> str | None:
    """Why no cluster can run on this machine; None if one can."""
    programs = ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "unshare")
    if absent := [name for name in programs if shutil.which(name) is None]:
        return f"no {', '.join(absent)}: apt-get install slurm-wlm munge"
    if os.geteuid() != 0:
        return "the one-machine Slurm needs root"
    foreign = [path for path in _links() if path.exists() and not path.is_symlink()]
    return f"{foreign[0]} belongs to a Slurm of this machine's own" if foreign else None


def slurm(*command: str) -> str:
    """Output of a Slurm command; raises CalledProcessError if it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _links() -> list[Path]:
    return [ETC / name for name in CONFIGURATION]


def _pid(name: str) -> int | None:
    """The pid of a daemon that runs; None if it does not."""
    try:
        pid = int((FOLDER / "pids" / name).read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if name.encode() in command else None


_children: dict[str, "subprocess.Popen[bytes]"] = {}


def start(name: str) -> None:
    """Starts munged, the controller or a node in the foreground of a session of its own."""
    if name == "munged":
        munge = FOLDER / "munge"
        files = [f"--{kind}-file={munge / kind}" for kind in ("key", "pid", "seed", "log")]
        command = ["munged", "--foreground", "--force", f"--socket={munge}/socket", *files]
    elif name == "slurmctld":
        command = ["slurmctld", "-D"]
    else:
        inside = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc"]
        command = [*inside, "slurmd", "-D", "-N", name]
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    with open(FOLDER / "log" / f"{name}.out", "ab") as out:
        _children[name] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
            start_new_session=True, cwd="/",
        )  # fmt: skip
    (FOLDER / "pids" / name).write_text(str(_children[name].pid))


def end(name: str, signum: int = signal.SIGKILL) -> None:
    """Ends a daemon; a node's jobs are gone with it. On SIGTERM the controller saves its state."""
    if pid := _pid(name):
        os.kill(pid, signum)
        if child := _children.pop(name, None):
            child.wait(timeout=30)
        wait_for(f"end of {name}", lambda: _pid(name) is None)


def succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def _states() -> dict[str, str]:
    lines = slurm("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def restore() -> None:
    """Cancels all jobs, starts what does not run, and waits until all nodes are idle."""
    for name in ("slurmctld", *NODES):
        if _pid(name) is None:
            start(name)
    wait_for("the controller", lambda: succeeds("scancel", "--user=root"), 60.0)
    for name, state in _states().items():
        if not state.startswith("idle"):
            succeeds("scontrol", "update", f"nodename={name}", "state=resume")
    wait_for("end of all jobs", lambda: not slurm("squeue", "-h", "-o", "%i"), 60.0)
    wait_for("all nodes idle", lambda: {*_states().values()} == {"idle"}, 60.0)


def up() -> None:
    """Starts a cluster that never ran, as a saved DRAIN would survive; returns once all nodes are idle."""
    if why := missing():
        raise RuntimeError(why)
    down()
    for name in ("state", "log", "pids", "munge", *(f"spool/{node}" for node in NODES)):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    FOLDER.chmod(0o755)
    (FOLDER / "munge").chmod(0o700)
    slurm("mungekey", "--create", f"--keyfile={FOLDER}/munge/key")
    hostname = socket.gethostname().split(".")[0]
    for name, text in CONFIGURATION.items():
        text = text.replace("FOLDER", str(FOLDER)).replace("HOSTNAME", hostname)
        (FOLDER / name).write_text(text)
        (ETC / name).symlink_to(FOLDER / name)
    for number in range(4):
        (FOLDER / f"nvidia{number}").symlink_to("/dev/null")
    start("munged")
    wait_for("munged", (FOLDER / "munge/socket").exists)
    restore()


def down() -> None:
    """Ends every process, link and file of the cluster."""
    for name in (*NODES, "slurmctld", "munged"):
        end(name)
    for link in _links():
        if link.is_symlink():
            link.unlink()
    shutil.rmtree(FOLDER, ignore_errors=True)


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]]()
