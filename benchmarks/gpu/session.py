"""One model from its checkpoint to all its figures; every part by itself."""

import argparse
import gc
import shutil
import time
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from benchmarks.gpu import first_use, tiers
from benchmarks.gpu.data import Data
from benchmarks.gpu.models import SIZES, WINDOW, write_checkpoint
from benchmarks.gpu.report import Report
from benchmarks.gpu.work import matmul_peak
from evaluation.checkpoints.format import open_checkpoint
from evaluation.checkpoints.load import load_model
from evaluation.scoring.engine.compiled import INDUCTOR
from evaluation.scoring.engine.forward import Engine
from evaluation.scoring.engine.loglikelihood import score_blocks, score_requests


class Options(argparse.Namespace):
    """How everything runs; `questions` and `blocks` are what is read of the data, `sample` what
    the loop is asked of it."""

    device: str
    dtype: str
    row_tokens: int
    sample: int
    threads: int
    seed: int
    data: Path
    questions: int
    blocks: int
    models: list[str]
    scratch: Path | None
    output: Path


class Session:
    """Runs the parts of one model and reports them under `models.<name>`."""

    def __init__(
        self, name: str, options: Options, data: Data, scratch: Path, report: Report
    ) -> None:
        self.name, self.options, self.data, self.report = name, options, data, report
        self.size = SIZES[name]
        self.folder = scratch / name
        self.checkpoint = self.folder / "1"
        self.device = torch.device(options.device)
        self.dtype = getattr(torch, options.dtype)
        self.samples = [task.spread(options.sample) for task in data.tasks]

    def run(self) -> None:
        try:
            if self._part("checkpoint", self._write) is not None:
                self._part("first_use", self._first_use)
                figures = self._engine()
                if figures is not None:
                    self._beside(figures)
        finally:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _part(self, name: str, run: Any) -> Any:
        return self.report.part(("models", self.name, *name.split(".")), run)

    def _write(self) -> dict[str, Any]:
        seconds = write_checkpoint(
            self.checkpoint, self.size, self.dtype, self.device, seed=self.options.seed
        )
        self._free()
        gigabytes = sum(p.stat().st_size for p in self.checkpoint.rglob("*") if p.is_file()) / 1e9
        return {"parameters": self.size.parameters, "gb": gigabytes, "write_seconds": seconds}

    def _first_use(self) -> dict[str, Any]:
        request = {
            "checkpoint": str(self.checkpoint),
            "data": str(self.options.data),
            "device": self.options.device,
            "dtype": self.options.dtype,
            "row_tokens": self.options.row_tokens,
            "threads": self.options.threads,
            # Enough for a full pass of each kind.
            "questions": min(self.options.questions or 300, 300),
            "blocks": min(self.options.blocks or 16, 16),
        }
        return first_use.cold_and_warm(request, self.folder / "compiled")

    def _load(self) -> PreTrainedModel:
        checkpoint = open_checkpoint(self.checkpoint)
        return load_model(checkpoint, dtype=self.dtype, device=self.options.device)

    def _loaded(self) -> tuple[PreTrainedModel, dict[str, Any]]:
        """From the page cache, as the checkpoint was written a moment ago."""
        start = time.perf_counter()
        model = self._load()
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        seconds = time.perf_counter() - start
        gigabytes = self.size.parameters * self.dtype.itemsize / 1e9
        return model, {"seconds": seconds, "gb_per_second": gigabytes / seconds}

    def _engine(self) -> "tiers.Figures | None":
        """All parts that need the engine; what it held is given back at the end."""
        found = self._part("load", self._loaded)
        if found is None:
            return None
        model, load = found
        self.report.set("models", self.name, "load", load)
        rows = self.options.row_tokens
        peak = self._part(
            "matmul", lambda: asdict(matmul_peak(self.size, rows, self.device, self.dtype))
        )
        engine = self._part("warm_up", lambda: self._warm(model))
        if peak is None or engine is None:
            return None
        figures = tiers.Figures(engine, self.size, peak["own_shapes"], self.samples)
        for kind in ("block", "document"):
            documents = kind == "document"
            self._part(
                f"tier2.{kind}",
                partial(tiers.tier2, figures, self.data.slices, documents=documents),
            )
        for task, sample in zip(self.data.tasks, self.samples, strict=True):
            self._part(f"tier3.{task.name}", partial(tiers.tier3, figures, task, sample))
        return figures

    def _warm(self, model: PreTrainedModel) -> Engine:
        """An engine that has run a pass of every kind, so that all is compiled."""
        engine = Engine(
            model,
            row_tokens=self.options.row_tokens,
            device=self.options.device,
            compiler=INDUCTOR.get(self.device.type),
        )
        first = self.data.slices[0].first(-(-self.options.row_tokens // WINDOW) * 2)
        score_blocks(engine, first.tokens)
        score_blocks(engine, first.tokens, first.starts)
        for task in self.data.tasks:
            score_requests(engine, task.spread(300).requests)
        return engine

    def _beside(self, figures: "tiers.Figures") -> None:
        """The plain loop on a model of its own, with nothing of ours in memory."""
        figures.engine = None  # type: ignore[assignment]
        self._free()
        if self.device.type == "cuda":
            self.report.set("models", self.name, "left_gb", torch.cuda.memory_allocated() / 1e9)
        measured = self.report.content["models"][self.name].get("tier3", {})
        done = [one for one in self.samples if one.name in figures.scores]
        loop = self._part("loop_model", lambda: tiers.new_loop(self._load()))
        for sample in done if loop is not None else ():
            ours = figures.scores[sample.name]
            self._part(
                f"loop.{sample.name}",
                partial(tiers.beside_loop, loop, sample, ours, measured[sample.name]),
            )
        del loop
        self._free()

    def _free(self) -> None:
        gc.collect()  # a model is a ring of references
        if self.device.type == "cuda":
            torch.cuda.empty_cache()
