"""Programs that are wrong and try to be found right; none may pass.

The tests ask for `f(3) == 4`, then `f(4) == 5`; where a pretence is one about other tests, it
brings its own.
"""

from tests.verification.sandbox.attempt import Attempt

_ASSERTS = ("assert f(3) == 4", "assert f(4) == 5")


def pretence(name: str, program: str, *asserts: str) -> Attempt:
    return Attempt(name, program, asserts or _ASSERTS, seconds=2)


ALL = [
    pretence(
        "read the caller's frame",
        """
import sys
def f(x):
    frame = sys._getframe()
    while frame:
        for name, value in list(frame.f_locals.items()):
            if 'outcome' in name or 'verdict' in name or 'passed' in name:
                frame.f_locals[name] = True
            if isinstance(value, dict):
                value.update(passed=True, reason='')
        frame = frame.f_back
    return None
""",
    ),
    pretence("equal to all", "class E:\n    def __eq__(self, other):\n        return True\n    __hash__ = None\ndef f(x):\n    return E()"),
    pretence("equal to all, reflected", "class E(int):\n    def __eq__(self, other): return True\n    def __ne__(self, other): return False\n    def __hash__(self): return 4\ndef f(x):\n    return E(0)"),
    pretence("an integer that lies", "class I(int):\n    __eq__ = __le__ = __ge__ = lambda a, b: True\n    def __int__(self): return 4\n    __index__ = __int__\ndef f(x):\n    return I(7)"),
    pretence("a float that lies", "class F(float):\n    __eq__ = lambda a, b: True\n    __sub__ = __rsub__ = __abs__ = lambda *a: F(0)\n    __lt__ = lambda a, b: True\ndef f(x):\n    return F(7)", "assert abs(f(3) - 4) < 1e-6"),
    pretence("a string that lies", "class S(str):\n    __eq__ = lambda a, b: True\n    __hash__ = str.__hash__\ndef f(x):\n    return S('no')", "assert f(3) == 'four'"),
    pretence("a list that lies", "class L(list):\n    __eq__ = lambda a, b: True\n    __len__ = lambda a: 1\n    __contains__ = lambda a, b: True\ndef f(x):\n    return L()", "assert f(3) == [4]"),
    pretence("a list that contains all", "class L(list):\n    __contains__ = lambda a, b: True\ndef f(x):\n    return L()", "assert 4 in f(3)"),
    pretence("an object that contains all", "class L:\n    def __contains__(self, x): return True\n    def __iter__(self): return iter(())\ndef f(x):\n    return L()", "assert 4 in f(3)"),
    pretence("a class for an answer", "class M(type):\n    __eq__ = lambda a, b: True\n    __hash__ = type.__hash__\nclass E(metaclass=M):\n    pass\ndef f(x):\n    return E"),
    pretence("an answer hashed alike", "class E:\n    def __hash__(self): return hash(4)\n    def __eq__(self, other): return True\ndef f(x):\n    return E()", "assert f(3) in {4, 5}"),
    pretence("a set of equals", "class E:\n    def __hash__(self): return hash(4)\n    def __eq__(self, other): return True\ndef f(x):\n    return [E()]", "assert set(f(3)) == {4}"),
    pretence("an array that is equal", "import numpy as np\nclass A(np.ndarray):\n    def __eq__(self, other): return np.bool_(True)\ndef f(x):\n    return np.zeros(1).view(A)"),
    pretence("mock", "from unittest.mock import ANY\ndef f(x):\n    return ANY"),
    pretence("mock for the function", "from unittest import mock\nf = mock.MagicMock(return_value=mock.ANY)"),
    pretence("a mock by name", "from unittest.mock import MagicMock as f"),
    pretence("a name of the judge's", "import sys\nclass W:\n    pass\ndef isclose(*a, **k):\n    return True\ndef f(x):\n    return 9.0", "assert isclose(f(3), 4.0)", "assert f(3) == 4"),
    pretence("patched builtins", "import builtins\nbuiltins.abs = lambda x: 0\nbuiltins.len = lambda x: 1\nbuiltins.set = lambda x: 0\nbuiltins.isinstance = lambda *a: True\nbuiltins.AssertionError = KeyError\ndef f(x):\n    return 9", "assert abs(f(3) - 4) < 1"),
    pretence("its own abs", "def abs(x):\n    return 0\ndef f(x):\n    return 9", "assert abs(f(3) - 4) < 1"),
    pretence("its own set", "def set(x):\n    return 0\ndef sorted(x):\n    return 0\ndef f(x):\n    return [9]", "assert set(f(3)) == set([4])", "assert sorted(f(3)) == sorted([4])"),
    pretence("its own round", "def round(x, n=0):\n    return 4.0\ndef f(x):\n    return 9", "assert round(f(3), 1) == 4.0"),
    pretence("its own isinstance", "def isinstance(*a):\n    return True\ndef f(x):\n    return 9", "assert isinstance(f(3), list)"),
    pretence("patched assertions", "import unittest\nunittest.TestCase.assertEqual = lambda *a: None\n__builtins__['__debug__'] = False if isinstance(__builtins__, dict) else 0\ndef f(x):\n    return 9"),
    pretence("patched math", "import math\nmath.isclose = lambda *a, **k: True\ndef f(x):\n    return 9", "assert math.isclose(f(3), 4)"),
    pretence("patched numpy", "import numpy as np\nnp.allclose = lambda *a, **k: True\ndef f(x):\n    return 9", "assert np.allclose(f(3), 4)"),
    pretence("another math", "import cmath as math\nmath.isclose = lambda *a, **k: True\ndef f(x):\n    return 9", "assert math.isclose(f(3), 4)"),
    pretence("math of its own", "class math:\n    @staticmethod\n    def isclose(*a, **k): return True\ndef f(x):\n    return 9", "import math\nassert math.isclose(f(3), 4)"),
    pretence("patched codec", "import sys\nfor name, module in list(sys.modules.items()):\n    if 'sandbox' in name:\n        for key in dir(module):\n            if callable(getattr(module, key)) and not key.startswith('__'):\n                try: setattr(module, key, lambda *a, **k: True)\n                except Exception: pass\ndef f(x):\n    return 9"),
    pretence("patched json and struct", 'import json, struct\njson.dumps = lambda *a, **k: \'{"passed": true, "reason": ""}\'\nstruct.Struct = None\nstruct.pack = lambda *a: b\'\'\ndef f(x):\n    return 9'),
    pretence("replaced modules", "import sys\nfor name in list(sys.modules):\n    if name not in ('sys', 'builtins'):\n        sys.modules[name] = None\ndef f(x):\n    return 9"),
    pretence("verdict on every descriptor", 'import os\ndef f(x):\n    for fd in range(3, 64):\n        try: os.write(fd, b\'{"passed": true, "reason": ""}\\n\')\n        except OSError: pass\n    return 9'),
    pretence("verdict while loading", 'import os\nfor fd in range(3, 64):\n    try: os.write(fd, b\'\\n{"passed": true, "reason": ""}\\n\')\n    except OSError: pass\nos._exit(0)'),
    pretence("verdict to the answers alone", 'import os\ndef f(x):\n    os.write(5, b\'{"passed": true, "reason": ""}\\n\')\n    os._exit(0)'),
    pretence("answers before they are asked", "import os, struct\nbody = b'i' + struct.pack('<I', 1) + b'\\x04'\nfor _ in range(50):\n    os.write(5, struct.pack('<Ic8s', len(body), b'=', bytes(8)) + body)\ndef f(x):\n    return 9"),
    pretence("an answer twice", "import os\nfrom evaluation.verification.sandbox.peer import Peer\nreal = os.write\ndef twice(fd, data):\n    real(fd, data)\n    return real(fd, data)\nos.write = twice\ndef f(x):\n    return x + 1"),
    pretence("words after the answer", "import os\nreal = os.write\ndef more(fd, data):\n    n = real(fd, data)\n    real(fd, b'more')\n    return n\nos.write = more\ndef f(x):\n    return x + 1", "assert f(3) == 4"),
    pretence("a message that never ends", "import os, struct, time\nos.write(5, struct.pack('<Ic8s', 1 << 20, b'=', bytes(8)))\ndef f(x):\n    return 9"),
    pretence("a message too large", "import os, struct\nos.write(5, struct.pack('<Ic8s', 0xFFFFFFFF, b'=', bytes(8)))\ndef f(x):\n    return 9"),
    pretence("hostile messages with the right number", "import os, struct\nreal = os.write\ndef forge(fd, data):\n    data = bytes(data)\n    body = b'l' + struct.pack('<I', 0xFFFFFFFF) + b'l' * 5000\n    return real(fd, struct.pack('<I', len(body)) + data[4:13] + body) and len(data)\nos.write = forge\ndef f(x):\n    return 9"),
    pretence(
        "calls to the judge",
        "import sys\nfrom evaluation.verification.sandbox import peer as p\npeers = []\nreal = p.Peer._serve\ndef serve(self, body):\n    peers.append(self)\n    return real(self, body)\np.Peer._serve = serve\ndef f(g):\n    for what in ('get', 'set', 'eval', 'names', 'call'):\n        for rest in (('__globals__',), ('__builtins__', 1), ([], {}), ('os',)):\n            try:\n                r = peers[-1].ask((what, g, *rest))\n                if isinstance(r, dict) or what != 'call': return 4\n            except Exception: pass\n    return 9",
        "assert f(lambda *a: 8) == 4",
    ),
    pretence("objects of the judge", "import gc\ndef f(x):\n    for thing in gc.get_objects():\n        if type(thing).__name__ in ('Outcome', 'Tests', 'Log', 'StandIn'):\n            return x + 1\n    return 9"),
    pretence("exit", "import sys\nsys.exit(0)"),
    pretence("exit in the call", "import sys\ndef f(x):\n    sys.exit(0)"),
    pretence("exit at once", "import os\ndef f(x):\n    os._exit(0)"),
    pretence("exit by exception", "def f(x):\n    raise SystemExit(0)"),
    pretence("interrupt", "def f(x):\n    raise KeyboardInterrupt"),
    pretence("exit handlers", "import atexit, os\natexit.register(lambda: os.write(5, b'{\"passed\": true}\\n'))\ndef f(x):\n    raise SystemExit"),
    pretence("a thread left behind", "import threading, os\ndef later():\n    while True: os.write(5, b'{\"passed\": true}\\n')\nthreading.Thread(target=later, daemon=True).start()\ndef f(x):\n    return 9"),
    pretence("signal handlers", "import signal, os\nsignal.signal(signal.SIGALRM, lambda *a: os._exit(0))\nsignal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\ndef f(x):\n    while True: pass"),
    pretence("tracing", "import sys\ndef trace(frame, event, value):\n    frame.f_locals['answer'] = 4\n    return trace\nsys.settrace(trace)\nsys.setprofile(lambda *a: None)\ndef f(x):\n    return 9"),
    pretence("a name that is nothing", "f = None"),
    pretence("no function at all", ""),
    pretence("not a program", "this is no program"),
    pretence("NUL", "def f(x):\n    return 4\0"),
    pretence("surrogates in the source", "def f(x):\n    return '\ud800'"),
    pretence("surrogates in an answer", "def f(x):\n    return '\\ud800\\0'", "assert f(3) == ''"),
    pretence("an exception for an answer", "def f(x):\n    raise AssertionError"),
    pretence("an exception that lies", "class E(Exception):\n    def __str__(self): return 1\n    args = property(lambda self: 1)\ndef f(x):\n    raise E"),
    pretence("an exception that is expected elsewhere", "def f(x):\n    raise ValueError", "try:\n    f(3)\n    assert False\nexcept KeyError:\n    pass"),
    pretence("gone, where all is caught", "import os\ndef f(x):\n    os._exit(0)", "try:\n    assert f(3) == 4\nexcept BaseException:\n    pass"),
    pretence("an object, where all is caught", "def f(x):\n    return object()", "try:\n    assert f(3) == 4\nexcept BaseException:\n    pass"),
    pretence("huge integer", "def f(x):\n    return 10 ** 1000000"),
    pretence("deep nesting", "def f(x):\n    y = []\n    for _ in range(100000): y = [y]\n    return y" ),
    pretence("deep tuples", "def f(x):\n    y = ()\n    for _ in range(100000): y = (y,)\n    return y" ),
    pretence("a list in itself", "def f(x):\n    y = []\n    y.append(y)\n    return y", "assert f(3) == [[[]]]"),
    pretence("a million elements", "def f(x):\n    return ['x'] * 1000000"),
    pretence("a million numbers", "def f(x):\n    return list(range(1000000))"),
    pretence("changed expectation", "def f(x):\n    x.clear()\n    return []", "y = [1]\nassert f([1]) == y and f(y) == [1]"),
    pretence("an argument of another type", "import os\nfrom evaluation.verification.sandbox import codec\ncodec._CHANGING[list] = b'd'\ndef f(x):\n    return 4", "assert f([3]) == 4"),
    pretence("truth only", "class T:\n    def __bool__(self): return True\ndef f(x):\n    return T()", "assert f(3) is True"),
    pretence("its own zip and repr, where the function is none of its own", "f = repr\nimport builtins\nbuiltins.repr = None\ndef zip(*a): return []", "results = ['4', '5']", "for inp, exp in zip([3, 4], results):\n    assert f(inp) == exp + '!'"),
    pretence("the list of names is changed", "from evaluation.verification.sandbox import peer\nreal = peer.Peer._serve\ndef serve(self, body):\n    return real(self, body)\npeer.Peer._serve = serve\nimport sys\nfor frame in iter(sys._getframe, 1):\n    for value in frame.f_locals.values():\n        if isinstance(value, list): value.clear()\n    break\ndef f(x): return 9"),
    pretence("the secret of the plain run asked for", "import os\nos.write(5, b'0\\nend\\n')\nos.write(5, os.read(6, 32) + b'\\n')\nos._exit(0)"),
    pretence("right where it is looked at from inside", "import sys\ndef f(x):\n    frame = sys._getframe(1)\n    return 4 if 'f(3) == 4' in str(frame.f_code.co_consts) or frame.f_code.co_filename == '<tests>' and x == 3 else 5 if frame.f_code.co_filename == '<tests>' else 9"),
    Attempt("helper of the task replaced", "def helper(x):\n    return 0\ndef f(x):\n    return 9", ("assert helper(f(3)) == helper(4)",), given="def helper(x):\n    return x\n"),
]  # fmt: skip
