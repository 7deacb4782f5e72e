"""A real Slurm on one machine: munged, slurmctld and five slurmd. Needs root and Debian's packages.

The four GPU nodes live in a network namespace that reaches the controller and nothing else; the
serial node has the machine's own network. Every node is a process namespace of its own, so that
killing its first process takes all of its jobs with it, as a power cut does.

    python -m tests.slurm.cluster up|down
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from tests.histories.warm import wait_for
from tests.slurm import layout
from tests.slurm.layout import ETC, FOLDER, GPU_NODES, HOST_IP, MUNGE_SOCKET, NETNS, NODES

# Daemons lie where the PATH of a bare environment does not look.
os.environ["PATH"] = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"

PROGRAMS = ("munged", "mungekey", "slurmctld", "slurmd", "sbatch", "ip", "unshare", "nsenter")
USAGE = """\
The cluster is up: partitions gpu (4 nodes of 4 GPUs, no network), gpu_requeue and gpu_cancel (the
same nodes, pre-emptable) and serial (1 node). Its files and logs lie in {folder}.

    sinfo; squeue
    make demo-data                # checkpoints, questions and text to try it on
    snakemake prefill --profile slurm_profile --configfile config/demo.yaml
    snakemake stage1 --profile slurm_profile --configfile config/demo.yaml

Stop it with `python -m tests.slurm.cluster down`."""


def missing() -> str | None:
    """Why no cluster can run on this machine; None if one can."""
    absent = [name for name in PROGRAMS if shutil.which(name) is None]
    if absent:
        return f"no {', '.join(absent)}: apt-get install slurm-wlm munge iproute2"
    if os.geteuid() != 0:
        return "the one-machine Slurm needs root"
    foreign = layout.foreign_configuration()
    if foreign is not None:
        return f"{foreign} belongs to a Slurm of this machine's own"
    done = subprocess.run(["unshare", "--net", "--pid", "--fork", "true"], capture_output=True)
    return "no right to make network namespaces" if done.returncode else None


def slurm(*command: str) -> str:
    """Output of a Slurm command; raises CalledProcessError if it fails."""
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


# --- processes, known by their pid files -------------------------------------------------------


def _pid_file(name: str) -> Path:
    return FOLDER / "pids" / name


def pid_of(name: str) -> int | None:
    """The pid of a daemon that runs; None if it does not."""
    try:
        pid = int(_pid_file(name).read_text())
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (OSError, ValueError):
        return None
    return pid if name.encode() in command else None


def _start(name: str, command: list[str]) -> None:
    """Starts a daemon in the foreground of a session of its own."""
    environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    with open(FOLDER / "log" / f"{name}.out", "ab") as out:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, env=environment,
            start_new_session=True, cwd="/",
        )  # fmt: skip
    _pid_file(name).parent.mkdir(exist_ok=True)
    _pid_file(name).write_text(str(process.pid))
    _children[name] = process


_children: dict[str, "subprocess.Popen[bytes]"] = {}


def _end(name: str, signum: int = signal.SIGKILL) -> None:
    pid = pid_of(name)
    if pid is None:
        return
    os.kill(pid, signum)
    child = _children.pop(name, None)
    if child is not None:
        child.wait(timeout=30)
    wait_for(f"end of {name}", lambda: pid_of(name) is None)


def start_munge() -> None:
    folder = FOLDER / "munge"
    key = folder / "key"
    if not key.exists():
        slurm("mungekey", "--create", f"--keyfile={key}")
    files = [f"--{kind}-file={folder / kind}" for kind in ("key", "pid", "seed", "log")]
    _start("munged", ["munged", "--foreground", "--force", f"--socket={MUNGE_SOCKET}", *files])
    wait_for("munged", MUNGE_SOCKET.exists)


def start_controller() -> None:
    _start("slurmctld", ["slurmctld", "-D"])


def stop_controller() -> None:
    """Ends the controller and lets it save its state."""
    _end("slurmctld", signal.SIGTERM)


def start_node(name: str) -> None:
    """Starts a node's slurmd. Mounts made later on the machine are seen by its jobs."""
    inside = [
        "unshare",
        "--pid",
        "--fork",
        "--kill-child",
        "--mount-proc",
        "--propagation",
        "slave",
    ]
    network = ["nsenter", f"--net=/run/netns/{NETNS}"] if name in GPU_NODES else []
    _start(name, [*network, *inside, "slurmd", "-D", "-N", name])


def kill_node(name: str) -> None:
    """Power cut: slurmd and all processes of its jobs are gone at once."""
    _end(name)


def hang_slurmd(name: str, signum: int = signal.SIGSTOP) -> None:
    """Stops the daemon, so that Slurm takes the node for lost while its jobs run on."""
    if pid := pid_of(name):
        for child in psutil.Process(pid).children():
            child.send_signal(signum)


# --- network -----------------------------------------------------------------------------------


def make_network() -> None:
    drop_network()
    ip = ["ip", "-n", NETNS]
    host, gpu = layout.VETH_HOST, layout.VETH_GPU
    for command in (
        ["ip", "netns", "add", NETNS],
        ["ip", "link", "add", host, "type", "veth", "peer", "name", gpu, "netns", NETNS],
        ["ip", "addr", "add", f"{HOST_IP}/30", "dev", host],
        ["ip", "addr", "add", f"{layout.OUTSIDE_IP}/32", "dev", "lo"],
        ["ip", "link", "set", host, "up"],
        [*ip, "addr", "add", f"{layout.GPU_IP}/30", "dev", gpu],
        [*ip, "link", "set", gpu, "up"],
        [*ip, "link", "set", "lo", "up"],
    ):
        slurm(*command)


def drop_network() -> None:
    _succeeds("ip", "netns", "del", NETNS)
    _succeeds("ip", "link", "del", layout.VETH_HOST)
    _succeeds("ip", "addr", "del", f"{layout.OUTSIDE_IP}/32", "dev", "lo")


# --- a small disk ------------------------------------------------------------------------------


def mount_small_disk() -> None:
    """A tmpfs that fills up soon; mounted before the nodes start, so that they see it."""
    layout.SMALL_DISK.mkdir()
    slurm("mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(layout.SMALL_DISK))


def unmount_small_disk() -> None:
    if layout.SMALL_DISK.is_mount():
        slurm("umount", "--lazy", str(layout.SMALL_DISK))


# --- the whole ---------------------------------------------------------------------------------


def node_states() -> dict[str, str]:
    lines = slurm("sinfo", "-h", "-N", "-o", "%N %T").splitlines()
    return dict(line.split(maxsplit=1) for line in lines)


def is_up() -> bool:
    return pid_of("slurmctld") is not None and all(pid_of(name) for name in NODES)


def wait_idle(seconds: float = 60.0) -> None:
    def idle() -> bool:
        try:
            states = node_states()
        except subprocess.CalledProcessError:
            return False
        return len(states) == len(NODES) and set(states.values()) == {"idle"}

    wait_for("all nodes idle", idle, seconds)


def restore() -> None:
    """Cancels all jobs, starts what does not run, and waits until all nodes are idle."""
    if pid_of("slurmctld") is None:
        start_controller()
    for name in NODES:
        hang_slurmd(name, signal.SIGCONT)
        if pid_of(name) is None:
            start_node(name)
    wait_for("the controller", lambda: _succeeds("scancel", "--user=root"), 60.0)
    for name, state in node_states().items():
        if not state.startswith("idle"):
            _succeeds("scontrol", "update", f"nodename={name}", "state=resume")
    wait_for("end of all jobs", lambda: not slurm("squeue", "-h", "-o", "%i"), 60.0)
    wait_idle()


def _succeeds(*command: str) -> bool:
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def up() -> float:
    """Starts the cluster; returns after how many seconds all nodes were idle."""
    why = missing()
    if why is not None:
        raise RuntimeError(why)
    down()
    begin = time.monotonic()
    layout.write_files()
    layout.link_configuration()
    make_network()
    mount_small_disk()
    start_munge()
    start_controller()
    for name in NODES:
        start_node(name)
    wait_idle()
    return time.monotonic() - begin


def down() -> None:
    """Ends every process, namespace, link and file of the cluster."""
    for name in (*NODES, "slurmctld", "munged"):
        _end(name)
    drop_network()
    unmount_small_disk()
    layout.unlink_configuration()
    shutil.rmtree(FOLDER, ignore_errors=True)


def main(arguments: list[str]) -> int:
    if arguments not in (["up"], ["down"]):
        print(__doc__, file=sys.stderr)
        return 2
    if arguments == ["down"]:
        down()
        return 0
    why = missing()
    if why is not None:
        print(f"no cluster: {why}", file=sys.stderr)
        return 1
    print(f"idle after {up():.1f} s; configuration linked into {ETC}")
    print(USAGE.format(folder=FOLDER))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
