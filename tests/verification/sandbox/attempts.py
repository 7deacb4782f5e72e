"""Attempts on the network, processes, files, secrets in memory and /proc, the kernel, and the limits."""

from tests.verification.sandbox.attempt import SYSCALL, attempt

NETWORK = [
    attempt("tcp", "import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\nreturn 'escaped'", works_unsandboxed=True),
    attempt("listen", "import socket\nsocket.create_server(('', 0))\nreturn 'escaped'", works_unsandboxed=True),
    attempt("udp", "import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', {port}))\nreturn 'escaped'", works_unsandboxed=True),
    attempt("unix socket", "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{folder}/socket')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("abstract unix socket", "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0sandbox-{port}')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("socket pair", "import socket\nsocket.socketpair()\nreturn 'escaped'", works_unsandboxed=True),
    attempt("netlink", "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\nreturn 'escaped'", works_unsandboxed=True),
]  # fmt: skip

PROCESSES = [
    attempt("fork", "import os\nif os.fork() == 0:\n    os._exit(0)\nreturn 'escaped'", works_unsandboxed=True),
    attempt("fork bomb", "import os\nwhile True:\n    os.fork()"),
    attempt("vfork and exec", "import subprocess\nsubprocess.run(['/bin/true'])\nreturn 'escaped'", works_unsandboxed=True),
    attempt("shell", "import os\nif os.system('true') == 0:\n    return 'escaped'", works_unsandboxed=True),
    attempt("exec", "import os, sys\nos.execv('/bin/sleep', ['sleep', '1000'])"),
    attempt("clone3", SYSCALL.format(call="435, ctypes.create_string_buffer(88), 88")),
    attempt("multiprocessing", "import multiprocessing\np = multiprocessing.get_context('fork').Process(target=int)\np.start()\nreturn 'escaped'"),
    attempt("thread", "import _thread\n_thread.start_new_thread(int, ())\nreturn 'escaped'", works_unsandboxed=True),
    attempt("daemon", "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\nreturn 'escaped'"),
    attempt("kill the parent", "import os\nos.kill(os.getppid(), 9)\nreturn 'escaped'"),
    attempt("kill who runs the sandbox", "import os\nos.kill({parent}, 0)\nreturn 'escaped'", works_unsandboxed=True),
    attempt("kill a process of the user", "import os\nos.kill({victim}, 9)\nreturn 'escaped'"),
    attempt("kill all", "import os\nos.kill(-1, 9)\nreturn 'escaped'"),
    attempt("signal by descriptor", "import os, signal\nfd = os.pidfd_open({victim})\nsignal.pidfd_send_signal(fd, 9)\nreturn 'escaped'"),
    attempt("signal by file owner", "import fcntl, os\nfor fd in range(9):\n    try:\n        fcntl.fcntl(fd, fcntl.F_SETOWN, {victim})\n        return 'escaped'\n    except OSError:\n        pass"),
    attempt("limits of another process", "import resource\nresource.prlimit({victim}, resource.RLIMIT_CPU, (1, 1))\nreturn 'escaped'"),
    attempt("priority of another process", "import os\nos.setpriority(os.PRIO_PROCESS, {victim}, 19)\nreturn 'escaped'"),
    attempt("ptrace", SYSCALL.format(call="101, 16, {victim}, 0, 0")),
    attempt(
        "memory of another process",
        "import ctypes, os\nlibc = ctypes.CDLL(None)\nb = ctypes.create_string_buffer(64)\n"
        "class V(ctypes.Structure):\n    _fields_ = [('a', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n"
        "v = V(ctypes.addressof(b), 8)\n"
        "if libc.process_vm_readv({victim}, ctypes.byref(v), 1, ctypes.byref(v), 1, 0) >= 0:\n    return 'escaped'\n"
        "if ctypes.get_errno() == 14:\n    return 'escaped'",
    ),
]  # fmt: skip

FILES = [
    attempt("write outside", "open('{folder}/sandbox-escape-1', 'w').write('x')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("write by the bare call", "import os\nos.open('{folder}/sandbox-escape-2', os.O_CREAT | os.O_WRONLY)\nreturn 'escaped'", works_unsandboxed=True),
    attempt("temporary file", "import tempfile\ntempfile.NamedTemporaryFile(prefix='sandbox-escape')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("write where it is", "open('sandbox-escape-3', 'w')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("write to Python", "import os\nopen(os.path.dirname(os.__file__) + '/sandbox-escape-4.py', 'w')\nreturn 'escaped'"),
    attempt("shared memory", "open('/dev/shm/sandbox-escape-5', 'w')\nreturn 'escaped'"),
    attempt("memory file", "import os\nos.memfd_create('sandbox-escape')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("shared segment", SYSCALL.format(call="29, 0x0CA6E5CA, 1 << 20, 0o1666")),
    attempt("message queue", SYSCALL.format(call="68, 0x0CA6E5CA, 0o1666")),
    attempt("delete", "import os\nos.unlink('{folder}/precious.txt')\nreturn 'escaped'"),
    attempt("rename", "import os\nos.rename('{folder}/precious.txt', '{folder}/sandbox-escape-6')\nreturn 'escaped'"),
    attempt("truncate", "import os\nos.truncate('{folder}/precious.txt', 0)\nreturn 'escaped'"),
    attempt("change mode", "import os\nos.chmod('{folder}/precious.txt', 0)\nreturn 'escaped'"),
    attempt("change owner", "import os\nos.chown('{folder}/precious.txt', os.getuid(), os.getgid())\nreturn 'escaped'", works_unsandboxed=True),
    attempt("change times", "import os\nos.utime('{folder}/precious.txt', (1, 1))\nreturn 'escaped'" ),
    attempt("link", "import os\nos.symlink('/etc', '{folder}/sandbox-escape-7')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("make a folder", "import os\nos.mkdir('{folder}/sandbox-escape-8')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("make a pipe with a name", "import os\nos.mkfifo('{folder}/sandbox-escape-9')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("fill the disk", "f = open('{folder}/sandbox-escape-10', 'wb')\nwhile True:\n    f.write(bytes(1 << 20))"),
    attempt("read a secret", "open('{folder}/secret.txt').read()\nreturn 'escaped'", works_unsandboxed=True),
    attempt("read the passwords", "open('/etc/passwd').read()\nreturn 'escaped'", works_unsandboxed=True ),
    attempt("list a folder", "import os\nos.listdir('{folder}')\nreturn 'escaped'", works_unsandboxed=True),
    attempt("climb out", "open('../../../../..{folder}/secret.txt').read()\nreturn 'escaped'", works_unsandboxed=True),
    attempt("map a file", "import mmap, os\nmmap.mmap(os.open('{folder}/secret.txt', os.O_RDONLY), 4, prot=mmap.PROT_READ)\nreturn 'escaped'", works_unsandboxed=True),
    attempt("open by number", SYSCALL.format(call="257, -100, b'{folder}/secret.txt', 0")),
    attempt("open with openat2", SYSCALL.format(call="437, -100, b'{folder}/secret.txt', bytes(24), 24"), works_unsandboxed=True),
    attempt("change the root", "import os\nos.chroot('.')\nreturn 'escaped'"),
    attempt(
        "devices",
        "import glob\nfor path in ['/dev/mem', '/dev/kmsg', '/dev/tty', '/dev/urandom', *glob.glob('/dev/vd*')]:\n"
        "    try:\n        open(path, 'rb').read(1)\n        return 'escaped'\n    except OSError:\n        pass",
        works_unsandboxed=True,
    ),
    attempt("make a device", "import os, stat\nos.mknod('{folder}/sandbox-escape-11', 0o600 | stat.S_IFBLK, os.makedev(8, 0))\nreturn 'escaped'"),
]  # fmt: skip

SECRETS = [
    attempt("environment", "import os\nif any(b'EVAL_SECRET' in k for k in os.environb):\n    return 'escaped'", works_unsandboxed=True),
    attempt(
        "environment of C",
        "import ctypes\nlibc = ctypes.CDLL(None)\nlibc.getenv.restype = ctypes.c_char_p\n"
        "if libc.getenv(b'EVAL_SECRET') or libc.getenv(b'HOME') or libc.getenv(b'PATH'):\n    return 'escaped'",
        works_unsandboxed=True,
    ),
    attempt("environment by /proc", "open('/proc/self/environ', 'rb').read()\nreturn 'escaped'", works_unsandboxed=True),
    attempt("environment of the parent", "import os\nopen(f'/proc/{os.getppid()}/environ', 'rb').read()\nreturn 'escaped'", works_unsandboxed=True),
    attempt("memory by /proc", "open('/proc/self/mem', 'rb')\nreturn 'escaped'", works_unsandboxed=True ),
    attempt("processes by /proc", "import os\nif any(name.isdigit() for name in os.listdir('/proc')):\n    return 'escaped'", works_unsandboxed=True),
    attempt("root by /proc", "open('/proc/1/root{folder}/secret.txt').read()\nreturn 'escaped'"),
    attempt("memory of the kernel", "open('/proc/kcore', 'rb')\nreturn 'escaped'"),
    attempt("descriptors", "import os\nfor fd in range(6, 1024):\n    try:\n        os.fstat(fd)\n        return 'escaped'\n    except OSError:\n        pass"),
    attempt("standard input, output and errors", "import os, stat\nfor fd in range(3):\n    if not stat.S_ISCHR(os.fstat(fd).st_mode):\n        return 'escaped'"),
    attempt(
        "tests in memory",
        "import gc\nfor thing in gc.get_objects():\n"
        "    if isinstance(thing, (list, dict, tuple)) and '-'.join(['NEEDLE', 'IN', 'TESTS']) in str(thing)[:10000]:\n        return 'escaped'",
        asserts=("assert f() == 'escaped' and 'NEEDLE-IN-TESTS'",),
    ),
]  # fmt: skip

KERNEL = [
    attempt("user namespace", SYSCALL.format(call="272, 0x10000000")),
    attempt("mount namespace", SYSCALL.format(call="272, 0x00020000")),
    attempt("enter a namespace", SYSCALL.format(call="308, 3, 0")),
    attempt("mount", "import ctypes\nif ctypes.CDLL(None).mount(b'tmpfs', b'/', b'tmpfs', 0, None) == 0:\n    return 'escaped'"),
    attempt("new mounts", SYSCALL.format(call="430, b'tmpfs', 0")),
    attempt("keyring", SYSCALL.format(call="250, 0, -3, 1"), works_unsandboxed=True),
    attempt("add a key", SYSCALL.format(call="248, b'user', b'sandbox', b'x', 1, -1")),
    attempt("bpf", SYSCALL.format(call="321, 0, bytes(72), 72")),
    attempt("io_uring", SYSCALL.format(call="425, 8, ctypes.create_string_buffer(120)"), works_unsandboxed=True),
    attempt("perf", SYSCALL.format(call="298, bytes(112), 0, -1, -1, 0")),
    attempt("userfaultfd", SYSCALL.format(call="323, 0")),
    attempt("kernel module", SYSCALL.format(call="175, b'x', 1, b''")),
    attempt("pipe", "import os\nos.pipe()\nreturn 'escaped'", works_unsandboxed=True),
    attempt("watch files", SYSCALL.format(call="294, 0"), works_unsandboxed=True),
    attempt("setuid", "import os\nos.setuid(os.getuid())\nreturn 'escaped'", works_unsandboxed=True ),
    attempt("become root", "import os\nos.setresuid(0, 0, 0)\nreturn 'escaped'"),
    attempt("capabilities", SYSCALL.format(call="126, bytes([0x22, 5, 8, 0x20, 0, 0, 0, 0]), b'\\xff' * 24")),
    attempt("another filter", SYSCALL.format(call="317, 1, 0, bytes(16)")),
    attempt("take back death with the parent", SYSCALL.format(call="157, 1, 0, 0, 0, 0"), works_unsandboxed=True),
    attempt("raise a limit", "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))\nreturn 'escaped'"),
    attempt(
        "32-bit system calls",
        "import ctypes, mmap\ncode = bytes.fromhex('b814000000cd80c3')\nm = mmap.mmap(-1, 4096, prot=7)\nm.write(code)\n"
        "if ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))() > 0:\n    return 'escaped'",
    ),
    attempt("x32 system calls", SYSCALL.format(call="0x40000000 + 41, 2, 1, 0")),
]  # fmt: skip

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
    attempt("blocked signals", "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\nwhile True:\n    time.sleep(1)", seconds=0.3),
    attempt("flood of output", "for _ in range(100):\n    print('x' * 1000000)\nreturn 'done'"),
    attempt("flood of errors", "import os\nfor _ in range(100):\n    os.write(2, bytes(1000000))\nreturn 'done'"),
    attempt("flood of answers", "import os\nwhile True:\n    os.write(5, b'\\0' * 65536)"),
    attempt("endless recursion", "import sys\nsys.setrecursionlimit(10 ** 9)\ndef g():\n    return g()\ng()", seconds=1, memory_mb=128),
    attempt("endless iteration", "import itertools\nreturn itertools.count()", asserts=("assert list(f()) == 1",), seconds=1, memory_mb=128),
    attempt("crash", "import ctypes\nctypes.string_at(0)"),
    attempt("colliding answer", "m = (1 << 61) - 1\nreturn {m * n for n in range(1 << 15)}", asserts=("assert f() == 1",), seconds=1),
    attempt("regular expression", "import re\nre.match('(a+)+$', 'a' * 60 + 'b')", seconds=1),
]  # fmt: skip


ALL = [*NETWORK, *PROCESSES, *FILES, *SECRETS, *KERNEL, *LIMITS]
