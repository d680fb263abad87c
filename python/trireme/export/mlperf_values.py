"""What MLPerf's lines say of a run beside its course, under MLPerf's keys."""

from __future__ import annotations

from typing import Any

from trireme.export.exported_run import ExportedRun

_BENCHMARKS = {"resnet50": "resnet"}  # by the recipe's name, where it differs
_OPTIONS = {
    "opt_name": "optimizer",
    "opt_base_learning_rate": "learning_rate",
    "opt_weight_decay": "weight_decay",
    "opt_learning_rate_warmup_steps": "warmup_steps",
    "opt_learning_rate_decay_steps": "decay_steps",
    "opt_gradient_clip_norm": "clip_norm",
    "train_samples": "samples",
}


def submission_values(run: ExportedRun, benchmark: str | None) -> dict[str, Any]:
    """Who submits is not known here. A run clears no caches."""
    segment = run.segments[0] if run.segments else None
    platform = f"{segment.ranks} ranks" if segment and segment.ranks != 1 else "1 rank"
    return {
        "submission_benchmark": benchmark or _BENCHMARKS.get(run.model, run.model),
        "submission_division": "open",
        "submission_status": "research",
        "submission_platform": platform + (f", {segment.host}" if segment and segment.host else ""),
        "cache_clear": False,
    }


def training_values(run: ExportedRun) -> dict[str, Any]:
    """Batch, optimizer, layout: of the first start, where starts differ in their plans."""
    batch = run.batch.whole("global_batch")
    microbatch = run.batch.whole("microbatch")
    values: dict[str, Any] = {
        "global_batch_size": batch,
        "micro_batch_size": microbatch,
        "seed": run.seed,
        "config_filename": "run.json",
    }
    for key, option in _OPTIONS.items():
        if option in run.options:
            values[key] = number_or_text(run.options[option])
    warmup, samples = values.get("opt_learning_rate_warmup_steps"), values.get("train_samples")
    if isinstance(warmup, int) and isinstance(samples, int) and samples and batch:
        values["opt_learning_rate_warmup_epochs"] = warmup * batch / samples
    values |= _layout(run, batch, microbatch)
    return {key: value for key, value in values.items() if value is not None}


def _layout(run: ExportedRun, batch: int | None, microbatch: int | None) -> dict[str, Any]:
    if not run.segments:
        return {}
    stages, replicas = run.segments[0].stages, run.segments[0].replicas
    values: dict[str, Any] = {
        "pipeline_parallelism": stages,
        "tensor_parallelism": 1,
        "context_parallelism": 1,
        "expert_parallelism": 1,
    }
    if batch and microbatch and replicas:
        values["gradient_accumulation_steps"] = batch // microbatch // replicas
    return values


def number_or_text(text: str) -> int | float | str:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text
