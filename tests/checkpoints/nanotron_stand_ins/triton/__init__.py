"""In place of Triton: kernels of ring attention are defined on import, and never run."""


def jit(kernel):
    return kernel


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)
    return lambda *_, **__: jit
