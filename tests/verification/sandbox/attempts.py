"""Attempts on the network, other processes and files, and the list of all attempts."""

from tests.verification.sandbox import attempts_inside
from tests.verification.sandbox.attempt import SYSCALL, attempt

NETWORK = [
    attempt(
        "tcp",
        "import socket\nsocket.create_connection(('127.0.0.1', {port}), 2)\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "listen",
        "import socket\nsocket.create_server(('', 0))\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "udp",
        "import socket\ns = socket.socket(type=socket.SOCK_DGRAM)\ns.sendto(b'x', ('127.0.0.1', {port}))\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "unix socket",
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('{folder}/socket')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "abstract unix socket",
        "import socket\ns = socket.socket(socket.AF_UNIX)\ns.connect('\\0sandbox-{port}')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "socket pair",
        "import socket\nsocket.socketpair()\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "netlink",
        "import socket\nsocket.socket(socket.AF_NETLINK, socket.SOCK_RAW)\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
]

PROCESSES = [
    attempt(
        "fork",
        "import os\nif os.fork() == 0:\n    os._exit(0)\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt("fork bomb", "import os\nwhile True:\n    os.fork()"),
    attempt(
        "vfork and exec",
        "import subprocess\nsubprocess.run(['/bin/true'])\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "shell",
        "import os\nif os.system('true') == 0:\n    return 'escaped'",
        works_unsandboxed=True,
    ),
    attempt("exec", "import os, sys\nos.execv('/bin/sleep', ['sleep', '1000'])"),
    attempt("clone3", SYSCALL.format(call="435, ctypes.create_string_buffer(88), 88")),
    attempt(
        "multiprocessing",
        "import multiprocessing\np = multiprocessing.get_context('fork').Process(target=int)\np.start()\nreturn 'escaped'",
    ),
    attempt(
        "thread",
        "import _thread\n_thread.start_new_thread(int, ())\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "daemon",
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(1000)\nreturn 'escaped'",
    ),
    attempt("kill the parent", "import os\nos.kill(os.getppid(), 9)\nreturn 'escaped'"),
    attempt(
        "kill who runs the sandbox",
        "import os\nos.kill({parent}, 0)\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt("kill a process of the user", "import os\nos.kill({victim}, 9)\nreturn 'escaped'"),
    attempt("kill all", "import os\nos.kill(-1, 9)\nreturn 'escaped'"),
    attempt(
        "signal by descriptor",
        "import os, signal\nfd = os.pidfd_open({victim})\nsignal.pidfd_send_signal(fd, 9)\nreturn 'escaped'",
    ),
    attempt(
        "signal by file owner",
        "import fcntl, os\nfor fd in range(9):\n    try:\n        fcntl.fcntl(fd, fcntl.F_SETOWN, {victim})\n        return 'escaped'\n    except OSError:\n        pass",
    ),
    attempt(
        "limits of another process",
        "import resource\nresource.prlimit({victim}, resource.RLIMIT_CPU, (1, 1))\nreturn 'escaped'",
    ),
    attempt(
        "priority of another process",
        "import os\nos.setpriority(os.PRIO_PROCESS, {victim}, 19)\nreturn 'escaped'",
    ),
    attempt("ptrace", SYSCALL.format(call="101, 16, {victim}, 0, 0")),
    attempt(
        "memory of another process",
        "import ctypes, os\nlibc = ctypes.CDLL(None)\nb = ctypes.create_string_buffer(64)\n"
        "class V(ctypes.Structure):\n    _fields_ = [('a', ctypes.c_void_p), ('n', ctypes.c_size_t)]\n"
        "v = V(ctypes.addressof(b), 8)\n"
        "if libc.process_vm_readv({victim}, ctypes.byref(v), 1, ctypes.byref(v), 1, 0) >= 0:\n    return 'escaped'\n"
        "if ctypes.get_errno() == 14:\n    return 'escaped'",
    ),
]

FILES = [
    attempt(
        "write outside",
        "open('{folder}/sandbox-escape-1', 'w').write('x')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "write by the bare call",
        "import os\nos.open('{folder}/sandbox-escape-2', os.O_CREAT | os.O_WRONLY)\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "temporary file",
        "import tempfile\ntempfile.NamedTemporaryFile(prefix='sandbox-escape')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "write where it is",
        "open('sandbox-escape-3', 'w')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "write to Python",
        "import os\nopen(os.path.dirname(os.__file__) + '/sandbox-escape-4.py', 'w')\nreturn 'escaped'",
    ),
    attempt("shared memory", "open('/dev/shm/sandbox-escape-5', 'w')\nreturn 'escaped'"),
    attempt(
        "memory file",
        "import os\nos.memfd_create('sandbox-escape')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt("shared segment", SYSCALL.format(call="29, 0x0CA6E5CA, 1 << 20, 0o1666")),
    attempt("message queue", SYSCALL.format(call="68, 0x0CA6E5CA, 0o1666")),
    attempt("delete", "import os\nos.unlink('{folder}/precious.txt')\nreturn 'escaped'"),
    attempt(
        "rename",
        "import os\nos.rename('{folder}/precious.txt', '{folder}/sandbox-escape-6')\nreturn 'escaped'",
    ),
    attempt("truncate", "import os\nos.truncate('{folder}/precious.txt', 0)\nreturn 'escaped'"),
    attempt("change mode", "import os\nos.chmod('{folder}/precious.txt', 0)\nreturn 'escaped'"),
    attempt(
        "change owner",
        "import os\nos.chown('{folder}/precious.txt', os.getuid(), os.getgid())\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "change times", "import os\nos.utime('{folder}/precious.txt', (1, 1))\nreturn 'escaped'"
    ),
    attempt(
        "link",
        "import os\nos.symlink('/etc', '{folder}/sandbox-escape-7')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "make a folder",
        "import os\nos.mkdir('{folder}/sandbox-escape-8')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "make a pipe with a name",
        "import os\nos.mkfifo('{folder}/sandbox-escape-9')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "fill the disk",
        "f = open('{folder}/sandbox-escape-10', 'wb')\nwhile True:\n    f.write(bytes(1 << 20))",
    ),
    attempt(
        "read a secret",
        "open('{folder}/secret.txt').read()\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "read the passwords", "open('/etc/passwd').read()\nreturn 'escaped'", works_unsandboxed=True
    ),
    attempt(
        "list a folder",
        "import os\nos.listdir('{folder}')\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "climb out",
        "open('../../../../..{folder}/secret.txt').read()\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt(
        "map a file",
        "import mmap, os\nmmap.mmap(os.open('{folder}/secret.txt', os.O_RDONLY), 4, prot=mmap.PROT_READ)\nreturn 'escaped'",
        works_unsandboxed=True,
    ),
    attempt("open by number", SYSCALL.format(call="257, -100, b'{folder}/secret.txt', 0")),
    attempt(
        "open with openat2",
        SYSCALL.format(call="437, -100, b'{folder}/secret.txt', bytes(24), 24"),
        works_unsandboxed=True,
    ),
    attempt("change the root", "import os\nos.chroot('.')\nreturn 'escaped'"),
    attempt(
        "devices",
        "import glob\nfor path in ['/dev/mem', '/dev/kmsg', '/dev/tty', '/dev/urandom', *glob.glob('/dev/vd*')]:\n"
        "    try:\n        open(path, 'rb').read(1)\n        return 'escaped'\n    except OSError:\n        pass",
        works_unsandboxed=True,
    ),
    attempt(
        "make a device",
        "import os, stat\nos.mknod('{folder}/sandbox-escape-11', 0o600 | stat.S_IFBLK, os.makedev(8, 0))\nreturn 'escaped'",
    ),
]


ALL = [*NETWORK, *PROCESSES, *FILES, *attempts_inside.ALL]
