"""Attempts on secrets in memory and /proc, on the kernel, and on the limits."""

from tests.verification.sandbox.attempt import SYSCALL, attempt

SECRETS = [
    attempt(
        "environment",
        "import os\nif any(b'EVAL_SECRET' in k for k in os.environb):\n    return 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "environment of C",
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.getenv.restype = ctypes.c_char_p\n"
        "if libc.getenv(b'EVAL_SECRET') or libc.getenv(b'HOME') or libc.getenv(b'PATH'):\n    return 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "environment by /proc",
        "open('/proc/self/environ', 'rb').read()\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "environment of the parent",
        "import os\nopen(f'/proc/{os.getppid()}/environ', 'rb').read()\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "memory by /proc", "open('/proc/self/mem', 'rb')\nreturn 'escaped'", works_unsandboxed=True
    ),
    attempt(
        "processes by /proc",
        "import os\nif any(name.isdigit() for name in os.listdir('/proc')):\n    return 'escaped'",
        works_unsandboxed=True,
    ),
    attempt("root by /proc", "open('/proc/1/root{folder}/secret.txt').read()\nreturn 'escaped'"),
    attempt("memory of the kernel", "open('/proc/kcore', 'rb')\nreturn 'escaped'"),
    attempt(
        "descriptors",
        "import os\nfor fd in range(6, 1024):\n    try:\n        os.fstat(fd)\n        return 'escaped'\n    except OSError:\n        pass",
    ),
    attempt(
        "standard input, output and errors",
        "import os, stat\nfor fd in range(3):\n    if not stat.S_ISCHR(os.fstat(fd).st_mode):\n        return 'escaped'",
    ),
    attempt(
        "tests in memory",
        "import gc\nfor thing in gc.get_objects():\n"
        "    if isinstance(thing, (list, dict, tuple)) and '-'.join(['NEEDLE', 'IN', 'TESTS']) in str(thing)[:10000]:\n        return 'escaped'",
        asserts=("assert f() == 'escaped' and 'NEEDLE-IN-TESTS'",),
    ),
]

KERNEL = [
    attempt("user namespace", SYSCALL.format(call="272, 0x10000000")),
    attempt("mount namespace", SYSCALL.format(call="272, 0x00020000")),
    attempt("enter a namespace", SYSCALL.format(call="308, 3, 0")),
    attempt(
        "mount",
        "import ctypes\nif ctypes.CDLL(None).mount(b'tmpfs', b'/', b'tmpfs', 0, None) == 0:\n    return 'escaped'",
    ),
    attempt("new mounts", SYSCALL.format(call="430, b'tmpfs', 0")),
    attempt("keyring", SYSCALL.format(call="250, 0, -3, 1"), works_unsandboxed=True),
    attempt("add a key", SYSCALL.format(call="248, b'user', b'sandbox', b'x', 1, -1")),
    attempt("bpf", SYSCALL.format(call="321, 0, bytes(72), 72")),
    attempt(
        "io_uring",
        SYSCALL.format(call="425, 8, ctypes.create_string_buffer(120)"),
        works_unsandboxed=True,
    ),
    attempt("perf", SYSCALL.format(call="298, bytes(112), 0, -1, -1, 0")),
    attempt("userfaultfd", SYSCALL.format(call="323, 0")),
    attempt("kernel module", SYSCALL.format(call="175, b'x', 1, b''")),
    attempt("pipe", "import os\nos.pipe()\nreturn 'escaped'", works_unsandboxed=True),
    attempt("watch files", SYSCALL.format(call="294, 0"), works_unsandboxed=True),
    attempt(
        "setuid", "import os\nos.setuid(os.getuid())\nreturn 'escaped'", works_unsandboxed=True
    ),
    attempt("become root", "import os\nos.setresuid(0, 0, 0)\nreturn 'escaped'"),
    attempt(
        "capabilities",
        SYSCALL.format(call="126, bytes([0x22, 5, 8, 0x20, 0, 0, 0, 0]), b'\\xff' * 24"),
    ),
    attempt("another filter", SYSCALL.format(call="317, 1, 0, bytes(16)")),
    attempt(
        "take back death with the parent",
        SYSCALL.format(call="157, 1, 0, 0, 0, 0"),
        works_unsandboxed=True,
    ),
    attempt(
        "raise a limit",
        "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))\nreturn 'escaped'",
    ),
    attempt(
        "32-bit system calls",
        "import ctypes, mmap\ncode = bytes.fromhex('b814000000cd80c3')\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(code)\n"
        "if ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))() > 0:\n    return 'escaped'",
    ),
    attempt("x32 system calls", SYSCALL.format(call="0x40000000 + 41, 2, 1, 0")),
]

LIMITS = [
    attempt("memory", "x = []\nwhile True:\n    x.append(bytearray(1 << 24))", memory_mb=256),
    attempt("memory at once", "x = bytearray(1 << 33)\nreturn 'escaped'"),
    attempt("shared memory of its own", "import mmap\nmmap.mmap(-1, 1 << 33)\nreturn 'escaped'"),
    attempt("a large answer", "return ['x' * 1000000] * 1000"),
    attempt("endless loop", "while True:\n    pass", seconds=1),
    attempt("endless sleep", "import time\ntime.sleep(1000)", seconds=0.3),
    attempt("endless load", "pass\nwhile True:\n    pass", seconds=1),
    attempt(
        "ignored signals",
        "import signal, time\nfor number in range(1, 65):\n    try:\n        signal.signal(number, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n        pass\nwhile True:\n    time.sleep(1)",
        seconds=0.3,
    ),
    attempt(
        "blocked signals",
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True:\n    time.sleep(1)",
        seconds=0.3,
    ),
    attempt("flood of output", "for _ in range(100):\n    print('x' * 1000000)\nreturn 'done'"),
    attempt(
        "flood of errors",
        "import os\nfor _ in range(100):\n    os.write(2, bytes(1000000))\nreturn 'done'",
    ),
    attempt("flood of answers", "import os\nwhile True:\n    os.write(5, b'\\0' * 65536)"),
    attempt(
        "endless recursion",
        "import sys\nsys.setrecursionlimit(10 ** 9)\ndef g():\n    return g()\ng()",
        seconds=1,
        memory_mb=128,
    ),
    attempt(
        "endless iteration",
        "import itertools\nreturn itertools.count()",
        asserts=("assert list(f()) == 1",),
        seconds=1,
        memory_mb=128,
    ),
    attempt("crash", "import ctypes\nctypes.string_at(0)"),
    attempt(
        "colliding answer",
        "m = (1 << 61) - 1\nreturn {m * n for n in range(1 << 15)}",
        asserts=("assert f() == 1",),
        seconds=1,
    ),
    attempt("regular expression", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", seconds=1),
]


ALL = [*SECRETS, *KERNEL, *LIMITS]
