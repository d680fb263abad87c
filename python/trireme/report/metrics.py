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
    gradient_norm: float | None = None


@dataclass(frozen=True)
class Evaluation:
    step: int
    loss: float
    by_name: dict[str, float] = field(default_factory=dict)


@dataclass
class Metrics:
    """`attempts`: runs of ascending steps; training that resumes earlier begins a new one."""

    attempts: list[list[Step]] = field(default_factory=list)
    evaluations: list[Evaluation] = field(default_factory=list)

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


def _add(line: Fields, metrics: Metrics) -> bool:
    """Whether the line was a step or an evaluation."""
    step = line.whole("step")
    if step is None:
        return False
    if "evaluation" in line:
        found = line.child("evaluation")
        by_name = found.child("by_name").all_numbers()
        metrics.evaluations.append(Evaluation(step, _finite(found.number("loss")), by_name))
        return True
    if "loss" not in line.names():
        return False
    one = Step(
        step,
        _finite(line.number("loss")),
        line.child("by_name").all_numbers(),
        line.number("learning_rate"),
        line.positive("step_ms"),
        line.number("samples_per_s"),
        line.number("data_wait_ms"),
        line.number("gradient_norm"),
    )
    if not metrics.attempts or metrics.attempts[-1][-1].step >= step:
        metrics.attempts.append([])
    metrics.attempts[-1].append(one)
    return True


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
        try:
            fields = Fields(parse(line), f"{path.name} line {number}", notes)
            is_good = _add(fields, metrics)
        except ValueError:
            is_good = False
        if is_good:
            continue
        if is_cut_off and number == len(lines):
            notes.add(f"{path.name} ends in the middle of line {number}: the run was killed there")
        else:
            unreadable.append(number)
    if unreadable:
        shown = ", ".join(map(str, unreadable[:5])) + (", .." if len(unreadable) > 5 else "")
        notes.add(f"{path.name}: {len(unreadable)} lines are unreadable and left out ({shown})")
    return metrics
