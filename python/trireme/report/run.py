"""A run's folder (docs/formats.md, Run), as plain data."""

from __future__ import annotations

import math
import re
import statistics
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from trireme.report.documents import NoDocument, read_document
from trireme.report.fields import Fields, Notes
from trireme.report.metrics import Metrics, Step, read_metrics
from trireme.report.plans import Plan, read_plan
from trireme.report.timelines import Timeline, read_timelines


class NotARun(Exception):
    """The folder holds no run; the text says why."""


@dataclass
class Segment:
    """Steps that were trained in one go, under one plan. What was not measured is None."""

    index: int
    first_step: int | None
    end_step: int | None
    ranks: int | None
    stages: int | None
    replicas: int | None
    schedule: str
    is_done: bool
    stopped_at: int | None
    started: str
    host: str
    predicted_step_ms: float | None
    median_step_ms: float | None
    predicted_peak_bytes: list[dict[str, float]]
    peak_bytes: list[float]
    resident_peak_bytes: list[float]
    data_wait_fraction: float | None
    plan: Plan | None = None
    timelines: list[Timeline] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def end(self) -> int | None:
        """One past its last step: as planned, or as far as it got if it did not end well."""
        if self.stopped_at is not None:
            return self.stopped_at
        if self.is_done:
            return self.end_step
        return self.steps[-1].step + 1 if self.steps else self.first_step

    def name(self) -> str:
        """What it is called on the page."""
        end = self.end()
        if self.first_step is None or end is None:
            return f"segment {self.index}"
        if end <= self.first_step:
            return f"steps from {self.first_step}"
        return f"steps {self.first_step} to {end - 1}"

    def has_mesh(self) -> bool:
        return self.stages is not None and self.replicas is not None

    def step_ms(self) -> float | None:
        """The measured median; that of the metrics where the segment did not end well."""
        if self.median_step_ms is not None:
            return self.median_step_ms
        times = [step.step_ms for step in self.steps if step.step_ms is not None]
        return statistics.median(times) if times else None

    def predicted_peaks(self) -> list[float]:
        """Per rank, all kinds together."""
        return [sum(kinds.values()) for kinds in self.predicted_peak_bytes]


@dataclass
class Run:
    folder: Path
    model: str
    options: dict[str, str]
    seed: int | None
    global_batch: float | None
    microbatch: int | None
    lanes: int | None
    segments: list[Segment]
    metrics: Metrics
    checkpoints: list[int]
    examples: str | None
    notes: Notes


def _segment(fields: Fields, index: int) -> Segment:
    return Segment(
        index,
        fields.whole("first_step"),
        fields.whole("end_step"),
        fields.whole("ranks"),
        fields.whole("stages"),
        fields.whole("replicas"),
        fields.text("schedule") or "",
        fields.text("ended") in ("done", "stopped"),
        fields.whole("stopped_at"),
        fields.text("started") or "",
        fields.text("host") or "",
        fields.positive("predicted_step_ms"),
        fields.positive("median_step_ms"),
        [rank.all_numbers() for rank in fields.children("predicted_peak_bytes")],
        fields.numbers("peak_bytes"),
        fields.numbers("resident_peak_bytes"),
        fields.number("data_wait_fraction"),
    )


def _file(folder: Path, name: str) -> Path:
    """A file that run.json names; only one inside of the run's folder is read."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise NoDocument(f"{name[:80]} is not inside of the run's folder")
    return folder / path


def _read_files(folder: Path, fields: Fields, segment: Segment, notes: Notes) -> None:
    """Plan and timelines of a segment."""
    plan, timeline = fields.text("plan"), fields.text("timeline")
    if plan is not None:
        try:
            segment.plan = read_plan(_file(folder, plan), notes)
        except NoDocument as error:
            notes.add(f"no plan of {segment.name()}: {error}")
    if timeline is not None:
        try:
            segment.timelines = read_timelines(_file(folder, timeline), notes)
        except NoDocument as error:
            notes.add(f"no timeline of {segment.name()}: {error}")
    elif segment.is_done:
        notes.add(f"no timeline of {segment.name()}: run.json names none")
    if not segment.is_done:
        notes.add(
            f"{segment.name()}: training did not reach step {segment.end_step}, the run was "
            "ended or is not finished; its peaks and its timeline are missing"
        )
    if segment.predicted_step_ms is None and segment.plan is not None:
        segment.predicted_step_ms = segment.plan.step_ms
    if not segment.predicted_peak_bytes and segment.plan is not None:
        segment.predicted_peak_bytes = segment.plan.peak_bytes


def assign_steps(segments: list[Segment], metrics: Metrics) -> None:
    """Gives each segment its steps.

    An attempt may run through several segments. A segment that begins where the next attempt does
    is that attempt's: the killed one before it had got just as far as its last checkpoint.
    """
    at = 0
    for number, attempt in enumerate(metrics.attempts):
        later = metrics.attempts[number + 1 :]
        following = later[0][0].step if later else None
        if number > 0:
            at += 1
        for step in attempt:
            while at + 1 < len(segments):
                first = segments[at + 1].first_step
                if first is None or step.step < first or first == following:
                    break
                at += 1
            if at < len(segments):
                segments[at].steps.append(step)


def _checkpoints(folder: Path) -> list[int]:
    """Steps of which there is a complete checkpoint."""
    steps = []
    for path in folder.glob("checkpoints/step-*/index.json"):
        match = re.fullmatch(r"step-([0-9]{1,18})", path.parent.name)
        if match:
            steps.append(int(match[1]))
    return sorted(steps)


def _examples(folder: Path, notes: Notes) -> str | None:
    path = folder / "examples.txt"
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return None
    except OSError as error:
        notes.add(f"examples.txt cannot be read: {error.strerror}")
        return None


def read_run_document(folder: Path, notes: Notes) -> Fields:
    """Raises NotARun where the folder holds none."""
    if not folder.is_dir():
        raise NotARun(f"{folder} is no folder; give the folder that holds run.json")
    if not (folder / "run.json").exists():
        raise NotARun(f"{folder} holds no run: it has no run.json")
    try:
        return read_document(folder / "run.json", "trireme.run", notes)
    except NoDocument as error:
        raise NotARun(f"{folder} holds no run: {error}") from None


def read_segments(document: Fields) -> list[Segment]:
    """Without the files that they name."""
    return [_segment(fields, index) for index, fields in enumerate(document.children("segments"))]


def read_run(folder: Path) -> Run:
    """Raises NotARun where the folder holds none."""
    notes = Notes()
    document = read_run_document(folder, notes)
    metrics = read_metrics(folder / "metrics.jsonl", notes)
    segments = read_segments(document)
    assign_steps(segments, metrics)
    for segment, fields in zip(segments, document.children("segments"), strict=True):
        _read_files(folder, fields, segment, notes)
    if not segments:
        notes.add("run.json lists no segments: nothing says how this was trained")
    batch = document.child("batch")
    return Run(
        folder,
        document.text("model") or "unnamed model",
        document.child("options").all_texts(),
        document.whole("seed"),
        batch.positive("global_batch"),
        batch.whole("microbatch"),
        batch.whole("lanes"),
        segments,
        metrics,
        _checkpoints(folder),
        _examples(folder, notes),
        notes,
    )


def is_finite(number: float | None) -> bool:
    return number is not None and math.isfinite(number)
