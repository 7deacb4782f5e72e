"""How the processes of a team find one another: a store of the leader's, then gloo or NCCL."""

import os
from datetime import timedelta
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist

if TYPE_CHECKING:
    from torch._C._distributed_c10d import TCPStore
    from torch.distributed.device_mesh import DeviceMesh

_HOST = "127.0.0.1"
_BACKENDS = {"cpu": "gloo", "cuda": "nccl"}


def open_store(patience: float) -> "TCPStore":
    """The leader's store, at a port of its own."""
    from torch._C._distributed_c10d import TCPStore

    return TCPStore(_HOST, 0, None, True, timedelta(seconds=patience), wait_for_workers=False)


def find_store(port: int, patience: float) -> "TCPStore":
    from torch._C._distributed_c10d import TCPStore

    return TCPStore(_HOST, port, None, False, timedelta(seconds=patience))


def join(store: "TCPStore", rank: int, ranks: int, device: str, patience: float) -> "DeviceMesh":
    """Meets the others. A collective call that one does not come to fails after `patience` s."""
    from torch.distributed.device_mesh import init_device_mesh

    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")  # a node without network has no other
    dist.init_process_group(
        _BACKENDS[device],
        store=store,
        rank=rank,
        world_size=ranks,
        timeout=timedelta(seconds=patience),
    )
    return init_device_mesh(device, (ranks,))


def leave() -> None:
    """Forgets the others; on a GPU also what is still to come from them."""
    if not is_in_team():
        return
    if dist.get_backend() == "nccl":
        from torch.distributed.distributed_c10d import _abort_process_group

        _abort_process_group()
    else:
        dist.destroy_process_group()


def is_in_team() -> bool:
    """Whether this process holds a part of a model, so that it must not do a pass by itself."""
    return dist.is_available() and dist.is_initialized()


def is_leader() -> bool:
    return dist.get_rank() == 0


def shared(choice: list[list[int]], device: torch.device) -> list[list[int]]:
    """The leader's numbers, in every process; all give as many."""
    table = torch.tensor(choice, device=device)
    dist.broadcast(table, src=0)
    found: list[list[int]] = table.tolist()
    return found
