"""Scoring makes no attempt to connect: the kernel of the GPU nodes' network counts them.

Their namespace has no route out, so every packet to anywhere but the controller raises a counter,
whether or not the program that tried shows its error.
"""

import subprocess
from collections.abc import Callable

from tests.slurm import cluster, layout
from tests.slurm.conftest import MakeRun
from tests.slurm.runs import STEP

HIDDEN = """
import contextlib, socket, urllib.request
with contextlib.suppress(Exception):
    urllib.request.urlopen("http://{address}:9/", timeout=2)
with contextlib.suppress(Exception):
    socket.create_connection(("2001:db8::1", 443), timeout=2)
"""


def unroutable() -> int:
    """Packets that found no route in the GPU nodes' namespace, IPv4 and IPv6."""
    inside = ["nsenter", f"--net=/run/netns/{layout.NETNS}", "cat"]
    v4 = cluster.slurm(*inside, "/proc/net/snmp").splitlines()
    names, values = (line.split()[1:] for line in v4 if line.startswith("Ip:"))
    v6 = dict(line.split() for line in cluster.slurm(*inside, "/proc/net/snmp6").splitlines())
    return int(dict(zip(names, values, strict=True))["OutNoRoutes"]) + int(v6["Ip6OutNoRoutes"])


def attempts(work: Callable[[], None]) -> int:
    before = unroutable()
    work()
    return unroutable() - before


def run_on(partition: str, program: str) -> int:
    """Exit code of a Python program as a Slurm job."""
    command = ["sbatch", "--wait", "-p", partition, "-o", "/dev/null", "--wrap"]
    return subprocess.run([*command, f"python3 -c '{program}'"], capture_output=True).returncode


def test_scoring_attempts_no_connection(make_run: MakeRun) -> None:
    run = make_run()

    def score() -> None:
        run.score()
        assert run.wait() == 0, run.log

    assert attempts(score) == 0
    assert run.tier(STEP).is_file()


def test_an_attempt_that_hides_its_error_is_counted(slurm: None) -> None:
    program = HIDDEN.format(address=layout.OUTSIDE_IP).replace("'", '"')

    def hide() -> None:
        assert run_on("gpu", program) == 0

    assert attempts(hide) >= 2


def test_only_the_serial_node_reaches_the_outside(slurm: None) -> None:
    program = f'import socket; socket.create_connection(("{layout.OUTSIDE_IP}", {layout.PORT}), 5)'
    listen = (
        f'import socket, time; s = socket.create_server(("{layout.OUTSIDE_IP}", {layout.PORT}))'
    )
    listener = subprocess.Popen(["python3", "-c", f"{listen}; time.sleep(60)"])
    try:
        cluster.wait_for("the listener", lambda: run_on("serial", program) == 0)
        assert run_on("gpu", program) != 0
    finally:
        listener.kill()
        listener.wait()
