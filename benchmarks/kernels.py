"""Compile the kernels of one layer and of the head for a GPU, without having one.

    make .triton/.complete && PYTHONPATH=.:.triton python -W ignore -m benchmarks.kernels 80   (or 90)

Layers are traced on CPU, the devices in the traced operations are replaced by a GPU, and Inductor and
Triton compile them for it. For each graph this prints the number of its kernels, and for those of
Triton the most shared memory and the most bytes of stack that a thread spills to. Matrix products and
the causal kernel come from libraries and count as one each.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import triton
from torch._dynamo.backends.common import aot_autograd
from torch._inductor.codecache import PyCodeCache
from torch._inductor.compile_fx import compile_fx_inner
from torch._inductor.decomposition import select_decomp_table
from torch._inductor.virtualized import V
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_map
from transformers import LlamaConfig, LlamaForCausalLM

from benchmarks.pretended import SHARED, pretended, stop, stopped
from evaluation.scoring.engine import gpu
from evaluation.scoring.engine.head import _all_totals
from evaluation.scoring.engine.masks import block_mask

MODELS = {
    "135M": {"heads": (9, 3), "width": 64, "hidden": 576, "inner": 1536},
    "1.7B": {"heads": (32, 32), "width": 64, "hidden": 2048, "inner": 8192},
    "8B": {"heads": (32, 8), "width": 128, "hidden": 4096, "inner": 14336},
    "width 96": {"heads": (32, 32), "width": 96, "hidden": 3072, "inner": 8192},
}
PASSES = {"plain text": (8, 2048, False), "tries": (1, 16384, True), "documents": (8, 2048, True)}
FEW = [
    ("135M", "plain text", torch.bfloat16),
    ("135M", "tries", torch.bfloat16),
    ("8B", "tries", torch.float32),
    ("width 96", "tries", torch.float32),
]
"""Cases of the tests: the model with the most overhead by kernels, and those that need the most memory."""


def trace(function: Callable[..., Any], *inputs: Any, **named: Any) -> tuple[Any, list[Any]]:
    """Return the graph of a call, in the operations that Inductor compiles, and its inputs."""
    compiler = aot_autograd(
        fw_compiler=stop, inference_compiler=stop, decompositions=select_decomp_table()
    )
    torch._dynamo.reset()
    with mock.patch.object(gpu, "is_on_gpu", _yes):
        found = stopped(
            lambda: torch.compile(function, backend=compiler, dynamic=False, fullgraph=True)(
                *inputs, **named
            )
        )
    return found[0], list(found[1])


def _yes(_: torch.Tensor) -> bool:
    return True


def generate(graph: Any, inputs: list[Any], capability: int) -> str:
    """Return the code that Inductor generates for a graph on a GPU."""
    fake = next(each.fake_mode for each in inputs if isinstance(each, FakeTensor))
    with fake:
        _move(graph)
        moved = tree_map(_moved, inputs)
    with (
        pretended(capability),
        V.set_fake_mode(fake),
        torch._guards.tracing(torch._guards.TracingContext(fake)),
    ):
        (code,) = stopped(lambda: compile_fx_inner(graph, moved))
    return str(code)


def _moved(value: Any) -> Any:
    if not isinstance(value, torch.Tensor):
        return value
    return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device="cuda")


def _move(graph: Any) -> None:
    for node in graph.graph.nodes:
        if "device" in node.kwargs:
            node.kwargs = {**node.kwargs, "device": torch.device("cuda", 0)}
        if "val" in node.meta:
            node.meta["val"] = tree_map(_moved, node.meta["val"])
    graph.recompile()
    for _, inner in graph.named_children():
        if isinstance(inner, torch.fx.GraphModule):
            _move(inner)


def measure(code: str, capability: int) -> dict[str, Any]:
    """Count the kernels of generated code; of Triton's, measure shared memory and spills."""
    calls = code[code.index("def call(") :]
    launched = re.findall(r"(\w+)\.run\(", calls)
    libraries = re.findall(r"extern_kernels\.\w+\(|torch\.ops\.\w+\.\w+\.\w+\(", calls)
    shared = spilled = 0
    with pretended(capability):
        for name, source in re.findall(r"async_compile\.triton\('(\w+)', '''(.*?)'''", code, re.S):
            kernel = getattr(PyCodeCache.load(source), name)
            of = [_compiled(kernel, config, capability) for config in kernel.configs]
            best = min(of, key=lambda each: (each[0] > SHARED[capability], each[1]))
            shared, spilled = max(shared, best[0]), max(spilled, best[1])
    return {
        "kernels": len(launched) + len(libraries),
        "of_triton": len(launched),
        "shared_bytes": shared,
        "stack_bytes": spilled,
    }


def _compiled(kernel: Any, config: Any, capability: int) -> tuple[int, int]:
    """Return the shared memory of a block and the stack of a thread, in bytes."""
    built = kernel._precompile_config(config).kernel
    tool = Path(triton.__file__).parent / "backends/nvidia/bin/cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(built.asm["cubin"])
        file.flush()
        usage = subprocess.run(
            [str(tool), "-res-usage", file.name], capture_output=True, text=True, check=True
        ).stdout
    return built.metadata.shared, max(map(int, re.findall(r"STACK:(\d+)", usage)), default=0)


@torch.inference_mode()
def layer_graph(shape: dict[str, Any], kind: str, dtype: torch.dtype) -> tuple[Any, list[Any]]:
    """Return the graph of a decoder layer with one kind of mask."""
    rows, length, is_masked = PASSES[kind]
    heads, kv_heads = shape["heads"]
    config = LlamaConfig(
        hidden_size=shape["hidden"], intermediate_size=shape["inner"], head_dim=shape["width"],
        num_attention_heads=heads, num_key_value_heads=kv_heads, num_hidden_layers=1, vocab_size=256,
    )  # fmt: skip
    model = LlamaForCausalLM._from_config(config, dtype=dtype, attn_implementation=gpu.ATTENTION)
    layer = model.eval().requires_grad_(False).model.layers[0]
    depth, end = torch.zeros(2, rows, length, dtype=torch.long)
    rope = torch.empty(rows, length, shape["width"], dtype=dtype)
    return trace(
        type(layer).forward,
        layer,
        torch.empty(rows, length, shape["hidden"], dtype=dtype),
        attention_mask=block_mask(depth, end, None) if is_masked else None,
        position_embeddings=(rope, rope),
    )


@torch.inference_mode()
def head_graph(vocabulary: int) -> tuple[Any, list[Any]]:
    """Return the graph of scoring a chunk of logits."""
    return trace(_all_totals, torch.empty(512, vocabulary))


def main(capability: int, *, is_few: bool) -> None:
    for vocabulary in (49152,) if is_few else (49152, 151936):
        found = measure(generate(*head_graph(vocabulary), capability), capability)
        print(json.dumps({"sm": capability, "head": vocabulary, **found}), flush=True)
    dtypes = (torch.bfloat16, torch.float32)
    for name, kind, dtype in FEW if is_few else product(MODELS, PASSES, dtypes):
        graph = layer_graph(MODELS[name], kind, dtype)
        found = measure(generate(*graph, capability), capability)
        label = {"sm": capability, "model": name, "pass": kind, "dtype": str(dtype)[6:]}
        print(json.dumps({**label, **found}), flush=True)


if __name__ == "__main__":
    *few, given = sys.argv[1:] or [""]
    if given not in ("80", "90") or few not in ([], ["--few"]):
        raise SystemExit("usage: python -m benchmarks.kernels [--few] 80|90")
    main(int(given), is_few=bool(few))  # one GPU a process, as compiled code stays in it
