"""A transformers model made ready for passes over batches, whose scores nothing has checked yet.

The model's own body runs under masks and positions given explicitly; the head runs only where a
token is scored. Plainly, layers run as transformers has them, under dense masks: always on CPU, and
on a GPU where they cannot be compiled. Compiled, they run plain sequences with a causal kernel and
others with flex attention.
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
"""Graphs of decoder layers in one process for each GPU that has layers. A job needs (2 for tasks +
1 or 2 for each length of text) x kinds of layers, twice as many again for each time that memory makes
it halve its rows."""


class PreparedModel:
    """A model, its head, and how its layers are run.

    Args:
        model: A loaded model, which others may use between passes.
        device: Where the model's first layer is: `cpu` or `cuda`.
        compiler: Backend of `torch.compile` for its layers, `inductor` on a GPU; None runs them
            plainly.
    """

    def __init__(
        self, model: PreTrainedModel, *, device: str, compiler: Compiler | None = None
    ) -> None:
        self.model = model
        self.device = torch.device(device)
        self.compiler = compiler
        self.vocab_size = model.get_input_embeddings().weight.shape[0]
        self.windows = layer_windows(model.config)
        self.head = Head(_output_layer(model), self.compiler)
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
        """Begin to score the pairs of a batch, whatever it asks; raise like `gpu_faults`.

        Args:
            batch: What `collate` made.

        Returns:
            The scores, on their way from the device.
        """
        with gpu_faults():
            hidden = self.hidden(batch)
            queries = batch.queries.to(hidden.device, non_blocking=True)
            asked = hidden.view(-1, hidden.shape[-1]).index_select(0, queries)
            scored = self.head.score(asked, batch.pair_query, batch.pair_token)
            return Pending(scored, batch.order)

    @torch.inference_mode()
    def hidden(self, batch: Batch) -> torch.Tensor:
        """Return the last hidden states of a batch.

        Args:
            batch: What `collate` made.

        Returns:
            Hidden states, (B, S, D).
        """
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
        """Give the model our attention and compiled layers; others get it back as it was.

        Once around many passes it costs nothing in each of them.

        Yields:
            Nothing.
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
        """Give the model back as others know it for a while, also where it is prepared."""
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
    """Run the model, which others use too, with its decoder layers compiled while the block lasts."""
    names = set(model._no_split_modules or ())
    layers = [module for module in model.modules() if type(module).__name__ in names]
    if not layers:
        raise CompileError(
            f"{type(model).__name__} does not say what its decoder layers are (`_no_split_modules`), "
            "so they cannot be compiled for a GPU"
        )
    most = MOST_GRAPHS * len({next(layer.parameters()).device for layer in layers})
    limits = {"recompile_limit": most, "accumulated_recompile_limit": 4 * most}
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
