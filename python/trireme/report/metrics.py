"""The lines of metrics.jsonl: steps and evaluations, in the order in which they were written."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from trireme.report.documents import parse
from trireme.report.fields import Fields, Notes


@dataclass(frozen=True)
class Step:
    step: int
    loss: float  # not a number where it was not finite: JSON has no text for that
    by_name: dict[str, float] = field(default_factory=dict)
    learning_rate: float | None = None
    step_ms: float | None = None
    samples_per_s: float | None = None
    data_wait_ms: float | None = None
    read_ms: float | None = None  # of microbatches, ahead of their steps
    decode_ms: float | None = None  # of all threads that read
    read_mb_per_s: float | None = None
    batches_ready: float | None = None  # when one was asked for
    gradient_norm: float | None = None
    loss_scale: float | None = None
    time_ms: int | None = None  # since 1970


@dataclass(frozen=True)
class Evaluation:
    step: int
    loss: float
    by_name: dict[str, float] = field(default_factory=dict)
    evaluation_ms: float | None = None  # that it took; not known where others made it
    time_ms: int | None = None


@dataclass
class Metrics:
    """`attempts`: runs of ascending steps; training that resumes earlier begins a new one."""

    attempts: list[list[Step]] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)

    def add(self, line: Step | Evaluation) -> None:
        if isinstance(line, Evaluation):
            self.evaluations.append(line)
            return
        if not self.attempts or self.attempts[-1][-1].step >= line.step:
            self.attempts.append([])
        self.attempts[-1].append(line)

    def steps(self) -> list[Step]:
        return [step for attempt in self.attempts for step in attempt]

    def not_finite(self) -> list[int]:
        """Steps whose loss is not finite, in order."""
        return [step.step for step in self.steps() if math.isnan(step.loss)]

    def parts(self) -> list[str]:
        """Names of the losses and metrics beside the loss itself, which one of them may be."""
        lines = [(step.loss, step.by_name) for step in self.steps()]
        lines += [(one.loss, one.by_name) for one in self.evaluations]
        names = {name for _, by_name in lines for name in by_name}
        return sorted(
            name
            for name in names
            if any(by_name.get(name, loss) != loss for loss, by_name in lines if loss == loss)
        )

    def repeated(self) -> tuple[int, int]:
        """How many steps were trained again, and how many of those had the same loss again."""
        first: dict[int, float] = {}
        again = same = 0
        for step in self.steps():
            if step.step in first:
                again += 1
                same += _is_same(first[step.step], step.loss)
            first.setdefault(step.step, step.loss)
        return again, same


def _is_same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _finite(number: float | None) -> float:
    return number if number is not None and math.isfinite(number) else math.nan


def parse_line(text: str, where: str, notes: Notes) -> Step | Evaluation | None:
    """None where the line is neither."""
    try:
        line = Fields(parse(text), where, notes)
    except ValueError:
        return None
    step = line.whole("step")
    if step is None:
        return None
    if "evaluation" in line:
        found = line.child("evaluation")
        return Evaluation(
            step,
            _finite(found.number("loss")),
            found.child("by_name").all_numbers(),
            line.positive("evaluation_ms"),
            line.whole("time_ms"),
        )
    if "loss" not in line.names():
        return None
    return Step(
        step,
        _finite(line.number("loss")),
        line.child("by_name").all_numbers(),
        line.number("learning_rate"),
        line.positive("step_ms"),
        line.number("samples_per_s"),
        line.number("data_wait_ms"),
        line.number("read_ms"),
        line.number("decode_ms"),
        line.number("read_mb_per_s"),
        line.number("batches_ready"),
        line.number("gradient_norm"),
        line.number("loss_scale"),
        line.whole("time_ms"),
    )


def read_metrics(path: Path, notes: Notes) -> Metrics:
    """What can be read of the file; the rest becomes notes."""
    metrics = Metrics()
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        notes.add(f"{path.name} cannot be read ({error.strerror}): no losses, no times of steps")
        return metrics
    lines = text.split("\n")
    is_cut_off = lines[-1] != ""
    unreadable = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = parse_line(line, f"{path.name} line {number}", notes)
        if found is not None:
            metrics.add(found)
        elif is_cut_off and number == len(lines):
            notes.add(f"{path.name} ends in the middle of line {number}: the run was killed there")
        else:
            unreadable.append(number)
    note_unreadable(path.name, unreadable, notes)
    return metrics


def note_unreadable(name: str, numbers: list[int], notes: Notes) -> None:
    """Of lines with these numbers; nothing where there are none."""
    if numbers:
        shown = ", ".join(map(str, numbers[:5])) + (", .." if len(numbers) > 5 else "")
        notes.add(f"{name}: {len(numbers)} lines are unreadable and left out ({shown})")
