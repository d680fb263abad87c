"""What all writers have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from trireme.export.exported_run import ExportedRun
from trireme.export.history import History, News
from trireme.report.fields import Notes
from trireme.report.metrics import Evaluation, Step

TRAIN = "train"
EVALUATION = "evaluation"

_FIELDS = (
    "learning_rate",
    "gradient_norm",
    "loss_scale",
    "step_ms",
    "samples_per_s",
    "data_wait_ms",
    "read_ms",
    "decode_ms",
    "read_mb_per_s",
    "batches_ready",
)


class ExportError(Exception):
    """What kept a writer from writing, and what to do."""


@dataclass(frozen=True)
class Point:
    name: str
    value: float  # not a number where a loss was not finite
    step: int
    time_ms: int  # 0 where it is not known


class Writer(Protocol):
    """Errors of all: ExportError, OSError."""

    def write(self, run: ExportedRun, history: History, news: News) -> None:
        """`news`: what has come to `history` since the last call."""

    def finish(self, run: ExportedRun, history: History, notes: Notes) -> str:
        """Once, after the last `write`, with the same run and history. Says what was written."""


def points_of(line: Step | Evaluation) -> Iterator[Point]:
    """The loss under `loss`; the losses and metrics that it has by name under those names."""
    time_ms = line.time_ms or 0
    yield Point("loss", line.loss, line.step, time_ms)
    for name, value in sorted(line.by_name.items()):
        if name != "loss" and name not in _FIELDS:
            yield Point(name, value, line.step, time_ms)
        elif not _is_same(value, line.loss):  # the only part of a loss may have its name
            yield Point(f"part/{name}", value, line.step, time_ms)
    if isinstance(line, Evaluation):
        if line.evaluation_ms is not None:
            yield Point("evaluation_ms", line.evaluation_ms, line.step, time_ms)
        return
    for name in _FIELDS:
        value = getattr(line, name)
        if value is not None:
            yield Point(name, value, line.step, time_ms)


def _is_same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def note_lines_without_time(history: History, notes: Notes) -> None:
    """Of runs, or their beginnings, of versions that wrote no times."""
    lost = sum(line.time_ms is None for line in history.lines())
    if lost:
        notes.add(
            f"{lost} lines of metrics.jsonl have no time_ms: they stand at the beginning of 1970"
        )
