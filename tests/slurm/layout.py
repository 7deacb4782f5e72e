"""Where the one-machine cluster lives, and the configuration files of its daemons."""

import socket
from pathlib import Path

FOLDER = Path("/run/evaluation-slurm")
"""Fixed, since the configuration must be found under /etc/slurm: the plugin's inner srun drops
SLURM_CONF from its environment. One cluster a machine."""
LOCK = Path("/run/evaluation-slurm.lock")
ETC = Path("/etc/slurm")
CONFIGURATION = ("slurm.conf", "gres.conf", "cgroup.conf")
NETNS = "evaluation-gpu"
HOST_IP, GPU_IP = "10.199.77.1", "10.199.77.2"
OUTSIDE_IP = "10.199.78.1"
"""An address of the machine that the GPU nodes have no route to."""
VETH_HOST, VETH_GPU = "evalslurm0", "evalslurm1"
GPU_NODES = ("gpu1", "gpu2", "gpu3", "gpu4")
SERIAL_NODES = ("serial1",)
NODES = GPU_NODES + SERIAL_NODES
GPUS = 4
"""GPUs a node claims: links to /dev/null, enough for Slurm to hand out CUDA_VISIBLE_DEVICES."""
SMALL_DISK = FOLDER / "small"
MUNGE_SOCKET = FOLDER / "munge" / "socket"

SLURM_CONF = """\
ClusterName=evaluation
SlurmctldHost={hostname}({host_ip})
SlurmctldPort=16817
AuthType=auth/munge
AuthInfo=socket={munge},cred_expire=5
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdSpoolDir={folder}/spool/%n
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/log/%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
JobRequeue=1
MinJobAge=3600
SlurmctldTimeout=30
SlurmdTimeout=15
KillWait=5
InactiveLimit=0
ReturnToService=2
MailProg=/bin/true
NodeName=gpu[1-4] NodeHostname={hostname} NodeAddr={gpu_ip} Port=[17001-17004] CPUs=32 \
RealMemory=500000 Gres=gpu:a100:{gpus}
NodeName=serial1 NodeHostname={hostname} NodeAddr={host_ip} Port=17005 CPUs=32 RealMemory=500000
PartitionName=gpu Nodes=gpu[1-4] PriorityTier=10 PreemptMode=OFF MaxTime=1-0
PartitionName=gpu_requeue Nodes=gpu[1-4] PriorityTier=1 PreemptMode=REQUEUE MaxTime=1-0
PartitionName=gpu_cancel Nodes=gpu[1-4] PriorityTier=1 PreemptMode=CANCEL MaxTime=1-0
PartitionName=serial Nodes=serial1 PriorityTier=10 PreemptMode=OFF MaxTime=1-0 Default=YES
"""
GRES_CONF = """\
AutoDetect=off
NodeName=gpu[1-4] Name=gpu Type=a100 File={folder}/nvidia[0-{last}] Flags=nvidia_gpu_env
"""
CGROUP_CONF = "CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n"


def write_files() -> None:
    """Writes the folder of a cluster that never ran; a saved DRAIN would survive otherwise."""
    for name in ("state", "spool", "log", "munge", *(f"spool/{node}" for node in NODES)):
        (FOLDER / name).mkdir(parents=True, exist_ok=True)
    FOLDER.chmod(0o755)
    (FOLDER / "munge").chmod(0o700)
    values = {
        "hostname": socket.gethostname().split(".")[0],
        "host_ip": HOST_IP,
        "gpu_ip": GPU_IP,
        "munge": MUNGE_SOCKET,
        "folder": FOLDER,
        "gpus": GPUS,
        "last": GPUS - 1,
    }
    (FOLDER / "slurm.conf").write_text(SLURM_CONF.format(**values))
    (FOLDER / "gres.conf").write_text(GRES_CONF.format(**values))
    (FOLDER / "cgroup.conf").write_text(CGROUP_CONF)
    for number in range(GPUS):
        device = FOLDER / f"nvidia{number}"
        device.unlink(missing_ok=True)
        device.symlink_to("/dev/null")


def foreign_configuration() -> Path | None:
    """A configuration in /etc/slurm that is not this cluster's: the machine has its own Slurm."""
    for name in CONFIGURATION:
        path = ETC / name
        ours = path.is_symlink() and path.readlink().parent == FOLDER
        if not ours and (path.exists() or path.is_symlink()):
            return path
    return None


def link_configuration() -> None:
    """Links the configuration into /etc/slurm."""
    unlink_configuration()
    ETC.mkdir(parents=True, exist_ok=True)
    for name in CONFIGURATION:
        (ETC / name).symlink_to(FOLDER / name)


def unlink_configuration() -> None:
    for name in CONFIGURATION:
        link = ETC / name
        if link.is_symlink() and link.readlink().parent == FOLDER:
            link.unlink()
