"""MLPerf's logging lines, as its compliance checker takes them.

What happened in a run, and when, is taken from its files. What they do not say (who submits, how many samples an
evaluation has) is given as values, or is not there: then the checker says so.
"""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trireme.export.exported_run import ExportedRun
from trireme.export.history import History, News
from trireme.export.mlperf_values import submission_values, training_values
from trireme.export.quality import Quality, WantedQuality, quality_of
from trireme.export.writer import ExportError
from trireme.report.fields import Notes
from trireme.report.metrics import Evaluation, Step
from trireme.report.write import write_atomically

_TOKEN = ":::MLLOG "
_MEASURED = ("block", "epoch", "eval", "init", "run")  # _start and _stop


@dataclass(frozen=True)
class Event:
    """`kind`: start, end, or event."""

    kind: str
    key: str
    time_ms: int
    value: Any = None
    metadata: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class MlperfOptions:
    """values   by key, in the place of the run's own, or beside them."""

    benchmark: str | None = None
    values: dict[str, Any] = field(default_factory=dict)
    quality: WantedQuality = WantedQuality()


class MlperfWriter:
    """Writes the whole file anew when an evaluation has come, for which it has a few lines."""

    def __init__(self, file: Path, options: MlperfOptions) -> None:
        from mlperf_logging.mllog.mllog import MLLogger

        self._logger: Any = MLLogger
        self._file = file
        self._options = options
        self._is_begun = False
        for key in options.values:
            if key == "eval_accuracy" or key in _measured_keys():
                raise ExportError(f"{key} of MLPerf is what the run measured; it cannot be given")

    def write(self, run: ExportedRun, history: History, news: News) -> None:
        """Steps alone say nothing new in these lines; there may be millions."""
        if news.evaluations or not self._is_begun:
            self._is_begun = True
            write_atomically(self._file, self._text(events_of(run, history, self._options)))

    def finish(self, run: ExportedRun, history: History, notes: Notes) -> str:
        events = events_of(run, history, self._options)
        write_atomically(self._file, self._text(events))
        keys = {event.key for event in events}
        if "run_stop" not in keys:
            notes.add("the run has not ended: MLPerf's lines have no run_stop")
        elif quality_of(run, self._options.quality).target is None:
            notes.add("no target is known, so MLPerf's run_stop says aborted; give --target")
        for key in ("eval_accuracy", "eval_samples", "submission_org"):
            if key not in keys:
                notes.add(f"MLPerf's lines have no {key}{_REMEDIES[key]}")
        return f"lines of MLPerf written to {self._file}"

    def _text(self, events: list[Event]) -> str:
        stream = io.StringIO()
        log = logging.Logger("trireme.mlperf", logging.INFO)
        log.addHandler(logging.StreamHandler(stream))
        logger = self._logger(log, root_dir=str(Path(__file__).parents[2]))
        for event in events:
            write = getattr(logger, event.kind)
            write(event.key, event.value, metadata=event.metadata, time_ms=event.time_ms)
        text = stream.getvalue()
        if sum(line.startswith(_TOKEN) for line in text.splitlines()) != len(events):
            raise ExportError(f"mlperf-logging left lines out:\n{text}")  # it does not raise
        return text


_REMEDIES = {
    "eval_accuracy": ": the run was not evaluated",
    "eval_samples": "; give --mlperf-value eval_samples=N",
    "submission_org": "; give --mlperf-value submission_org=NAME",
}


def _measured_keys() -> list[str]:
    return [f"{name}_{end}" for name in _MEASURED for end in ("start", "stop")]


def parse_value(text: str) -> tuple[str, Any]:
    """KEY=VALUE, the value in JSON or as text. Raises ExportError."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise ExportError(f"--mlperf-value is KEY=VALUE, not {text!r}")
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def events_of(run: ExportedRun, history: History, options: MlperfOptions) -> list[Event]:
    """In order of time; as far as the run has come. Raises ExportError where times are missing."""
    lines = _lines_by_time(history)
    started = run.started_ms()
    if started is None:
        raise ExportError(
            "run.json does not say when the run was started, which MLPerf's lines need"
        )
    values = submission_values(run, options.benchmark) | training_values(run) | options.values
    events = [
        *(Event("event", key, started, value) for key, value in values.items()),
        Event("start", "init_start", started),
    ]
    if not lines:
        return events
    quality = quality_of(run, options.quality)
    course = _Course(_Samples(run), quality)
    begin = max(started, _begin_ms(lines[0]))
    events += [Event("end", "init_stop", begin), Event("start", "run_start", begin)]
    events += course.events(lines, run.has_ended())
    if run.has_ended():
        status = "success" if quality.is_met(history) else "aborted"
        metadata = {"status": status, **course.samples.metadata(history.steps.last + 1)}
        events.append(Event("end", "run_stop", lines[-1].time_ms or 0, metadata=metadata))
    return events


def _lines_by_time(history: History) -> list[Step | Evaluation]:
    lines = history.lines()
    if any(line.time_ms is None for line in lines):
        raise ExportError(
            "metrics.jsonl has lines without time_ms, of a version that wrote none; MLPerf's lines need "
            "the times: train again"
        )

    def position(line: Step | Evaluation) -> tuple[int, int, bool]:
        is_evaluation = isinstance(line, Evaluation)
        return line.time_ms or 0, line.step + (not is_evaluation), is_evaluation

    return sorted(lines, key=position)


def _begin_ms(line: Step | Evaluation) -> int:
    """When what the line says was begun; when it was written where that is not known."""
    took = line.step_ms if isinstance(line, Step) else line.evaluation_ms
    return round((line.time_ms or 0) - (took or 0))


class _Samples:
    """How far a number of steps is, in samples and epochs."""

    def __init__(self, run: ExportedRun) -> None:
        self._batch = run.batch.whole("global_batch") or 0
        text = run.options.get("samples", "")
        self._epoch = int(text) if text.isdigit() else 0

    def epochs(self, steps: int) -> float | None:
        return steps * self._batch / self._epoch if self._epoch else None

    def metadata(self, steps: int) -> dict[str, Any]:
        found: dict[str, Any] = {"samples_count": steps * self._batch, "step_num": steps}
        epochs = self.epochs(steps)
        return found if epochs is None else {"epoch_num": epochs, **found}

    def block(self, begin: int, end: int | None) -> dict[str, Any]:
        """Of the steps from `begin` on; `end`: where it is known already."""
        first = self.epochs(begin)
        if first is None:
            return {"samples_count": begin * self._batch, "step_num": begin}
        found = {"first_epoch_num": first, "step_num": begin}
        if end is not None:
            found["epoch_count"] = (self.epochs(end) or 0) - first
        return found


class _Course:
    """Blocks of steps, and the evaluations between them."""

    def __init__(self, samples: _Samples, quality: Quality) -> None:
        self.samples = samples
        self._quality = quality

    def events(self, lines: list[Step | Evaluation], has_ended: bool) -> list[Event]:
        events: list[Event] = []
        block: list[Step] = []
        between: list[Event] = []  # evaluations that others made, beside the steps of the block
        for line in lines:
            if isinstance(line, Step):
                block.append(line)
            elif line.evaluation_ms is None and block:
                between += self._evaluation(line)
            else:
                events += self._block(block, between, is_whole=True)
                events += self._evaluation(line)
                block, between = [], []
        return events + list(self._block(block, between, is_whole=has_ended))

    def _block(self, steps: list[Step], between: list[Event], is_whole: bool) -> Iterator[Event]:
        if not steps:
            return
        begin, end = steps[0].step, steps[-1].step + 1
        metadata = self.samples.block(begin, end)
        yield Event("start", "block_start", _begin_ms(steps[0]), metadata=metadata)
        last_ms = steps[-1].time_ms or 0
        yield from (event for event in between if event.time_ms <= last_ms)
        if is_whole:
            yield Event("end", "block_stop", last_ms, metadata=self.samples.block(begin, end))
        yield from (event for event in between if event.time_ms > last_ms)

    def _evaluation(self, line: Evaluation) -> Iterator[Event]:
        metadata = self.samples.metadata(line.step)
        time_ms = line.time_ms or 0
        if line.evaluation_ms is not None:
            yield Event("start", "eval_start", _begin_ms(line), metadata=metadata)
        yield Event("event", "eval_accuracy", time_ms, self._quality.value(line), metadata)
        if line.evaluation_ms is not None:
            yield Event("end", "eval_stop", time_ms, metadata=metadata)
