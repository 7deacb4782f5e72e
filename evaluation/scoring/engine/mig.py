"""Parts of a GPU (MIG), as nvidia-smi tells of them.

`nvidia-smi -L` alone has their names, and `nvidia-smi -q -x` alone their memory; the number of the
part on its GPU stands in both. A query of the whole GPU counts what all parts hold together, or
nothing.

    GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-9c73…)
      MIG 1g.10gb     Device  0: (UUID: MIG-a686…)
"""

import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

_GPU = re.compile(r"^GPU \d+: .*\(UUID: (GPU-[^)]+)\)")
_PART = re.compile(r"^\s+MIG (\S+)\s+Device\s+(\d+): \(UUID: (MIG-[^)]+)\)")
_SIZE = re.compile(r"\.(\d+)gb")


@dataclass(frozen=True)
class Part:
    """A part of a GPU: the whole's UUID, its number there, its profile, and its own UUID."""

    gpu: str
    number: int
    profile: str
    uuid: str

    @property
    def nominal(self) -> int | None:
        """MiB by the name of its profile, some per cent more than can be had."""
        size = _SIZE.search(self.profile)
        return int(size[1]) * 1024 if size else None


def read_parts(listed: str) -> list[Part]:
    """All parts that `nvidia-smi -L` lists, in its order."""
    parts, gpu = [], ""
    for line in listed.splitlines():
        if found := _GPU.match(line):
            gpu = found[1]
        elif found := _PART.match(line):
            parts.append(Part(gpu, int(found[2]), found[1], found[3]))
    return parts


def read_memory(document: str) -> dict[tuple[str, int], tuple[int, int]]:
    """MiB used and in all, of each part by its GPU's UUID and its number, from `nvidia-smi -q -x`.

    A part whose memory is not told, or a document that is no XML, is left out.
    """
    try:
        gpus = ET.fromstring(document).findall("gpu")
    except ET.ParseError:
        return {}
    found = {}
    for gpu in gpus:
        for part in gpu.findall("mig_devices/mig_device"):
            used, total = (_mib(part, name) for name in ("used", "total"))
            number = part.findtext("index", "")
            if used is not None and total is not None and number.isdigit():
                found[gpu.findtext("uuid", ""), int(number)] = used, total
    return found


def _mib(part: ET.Element, name: str) -> int | None:
    text = part.findtext(f"fb_memory_usage/{name}", "").removesuffix("MiB").strip()
    return int(text) if text.isdigit() else None
