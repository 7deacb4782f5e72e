"""Prepare a transformers model for forward passes over batches, without the self-check of its scores.

The model's own body runs with explicit masks and positions; the head runs only where a token is scored.
Uncompiled layers run as in transformers, with dense masks: always on CPU, and on a GPU that cannot
compile them. Compiled layers run plain sequences with a causal kernel, and others with flex attention.
"""

import contextlib
from collections.abc import Iterator
from functools import partial

import torch
from torch.nn.attention import sdpa_kernel
from transformers import PreTrainedModel

from evaluation.errors import CompileError, ScoringError
from evaluation.scoring.engine import attend
from evaluation.scoring.engine.batches import Batch
from evaluation.scoring.engine.busy import working
from evaluation.scoring.engine.compiled import Compiler, compiled
from evaluation.scoring.engine.faults import gpu_faults
from evaluation.scoring.engine.head import Head, Pending
from evaluation.scoring.engine.masks import block_mask, dense_mask, layer_masks, layer_windows

MOST_GRAPHS = 64
"""Most graphs of decoder layers in one process for each GPU that has layers. A job needs (2 for tasks +
1 or 2 for each length of text) x kinds of layers, and as many again each time that it halves its rows
for lack of memory."""


class PreparedModel:
    """A model and its head, with compiled or uncompiled layers.

    Args:
        model: A loaded model, which other code may use between passes.
        device: Device of the model: `cpu` or `cuda`.
        compiler: Backend of `torch.compile` for its layers, `inductor` on a GPU; None: uncompiled.
    """

    def __init__(
        self, model: PreTrainedModel, *, device: str, compiler: Compiler | None = None
    ) -> None:
        self.model = model
        self.device = torch.device(device)
        self.compiler = compiler
        self.head = Head(_output_layer(model), self.compiler)
        self.vocab_size = model.get_input_embeddings().weight.shape[0]
        self.windows = layer_windows(model.config)
        self._swaps: contextlib.ExitStack | None = None

    @property
    def on_gpu(self) -> bool:
        """Whether the model's first layer is on a GPU."""
        return self.device.type == "cuda"

    @property
    def is_compiled(self) -> bool:
        """Whether layers are compiled."""
        return self.compiler is not None

    @working
    @torch.inference_mode()
    def begin(self, batch: Batch) -> Pending:
        """Begin to score the pairs of a batch, without any check; raise like `gpu_faults`."""
        with gpu_faults():
            hidden = self.hidden(batch)
            queries = batch.queries.to(hidden.device, non_blocking=True)
            needed = hidden.view(-1, hidden.shape[-1]).index_select(0, queries)
            scored = self.head.score(needed, batch.pair_query, batch.pair_token)
            return Pending(scored, batch.order)

    @torch.inference_mode()
    def hidden(self, batch: Batch) -> torch.Tensor:
        """Return the last hidden states (B, S, D) of a batch."""
        tokens, depth, end = (
            part.to(self.device, non_blocking=True)
            for part in (batch.tokens, batch.depth, batch.end)
        )
        maker = block_mask if self.is_compiled else dense_mask
        masks = layer_masks(depth, end, self.windows, maker, is_causal=batch.is_causal)
        with self.prepared():
            output = self.model.base_model(
                input_ids=tokens, attention_mask=masks, position_ids=depth, use_cache=False
            )
        hidden: torch.Tensor = output.last_hidden_state
        return hidden

    @contextlib.contextmanager
    def prepared(self) -> Iterator[None]:
        """Install this project's attention and compiled layers in the model; restore it afterwards.

        One block around many passes does this only once.
        """
        if self._swaps is not None:
            yield
            return
        self._prepare()
        try:
            yield
        finally:
            self._restore()

    @contextlib.contextmanager
    def as_it_was(self) -> Iterator[None]:
        """Restore the original model while the block lasts, also within `prepared`."""
        is_prepared = self._swaps is not None
        if is_prepared:
            self._restore()
        try:
            yield
        finally:
            if is_prepared:
                self._prepare()

    def _prepare(self) -> None:
        with contextlib.ExitStack() as swaps:
            swaps.enter_context(attend.attention_by(self.model, attend.NAME))
            if self.compiler is None:
                swaps.enter_context(sdpa_kernel(attend.UNPLANNED))
            else:
                swaps.enter_context(_compiled_layers(self.model, self.compiler))
            self._swaps = swaps.pop_all()

    def _restore(self) -> None:
        swaps, self._swaps = self._swaps, None
        if swaps is not None:
            swaps.close()


@contextlib.contextmanager
def _compiled_layers(model: PreTrainedModel, compiler: Compiler) -> Iterator[None]:
    """Run the model with compiled decoder layers while the block lasts."""
    names = set(model._no_split_modules or ())
    layers = [module for module in model.modules() if type(module).__name__ in names]
    if not layers:
        raise CompileError(
            f"{type(model).__name__} does not name its decoder layers (`_no_split_modules`), so they "
            "cannot be compiled for a GPU"
        )
    limits = {"recompile_limit": MOST_GRAPHS, "accumulated_recompile_limit": 4 * MOST_GRAPHS}
    for layer in layers:
        layer.forward = partial(compiled(type(layer).forward, compiler), layer)
    try:
        with torch._dynamo.config.patch(limits):
            yield
    finally:
        for layer in layers:
            del layer.forward


def _output_layer(model: PreTrainedModel) -> torch.nn.Linear:
    layer = model.get_output_embeddings()
    if not isinstance(layer, torch.nn.Linear):
        raise ScoringError(
            f"{type(model).__name__} has no linear output layer; only causal language models are scored"
        )
    return layer
