"""The steps and evaluations of a run, each once: of what was trained again, the later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from trireme.report.metrics import Evaluation, Step

Line = TypeVar("Line", Step, Evaluation)


@dataclass(frozen=True)
class Change(Generic[Line]):
    """What has come to a series, by ascending steps."""

    lines: list[Line]
    rewritten_from: int | None  # what was taken before, from this step on, no longer holds


@dataclass
class Series(Generic[Line]):
    """Lines by step. `take` tells of each line once, but where it was replaced."""

    lines: dict[int, Line] = field(default_factory=dict)
    last: int = -1  # the largest step
    _fresh: list[Line] = field(default_factory=list)
    _taken_to: int = -1
    _changed_from: int | None = None

    def put(self, line: Line) -> None:
        """A later line of the same step takes its place."""
        if line.step <= self.last:
            self._void(line.step)
        self.lines[line.step] = line
        self.last = max(self.last, line.step)
        self._fresh.append(line)

    def remove_from(self, step: int) -> None:
        if step > self.last:
            return
        self._void(step)
        self.lines = {one: line for one, line in self.lines.items() if one < step}
        self.last = max(self.lines, default=-1)

    def take(self) -> Change[Line] | None:
        """None where nothing has changed since the last call."""
        begin = self._changed_from
        fresh: list[Line] = self._fresh
        self._changed_from, self._fresh = None, []
        if begin is not None:
            first = min([begin, *(line.step for line in fresh)])
            fresh = [self.lines[step] for step in sorted(self.lines) if step >= first]
        if begin is None and not fresh:
            return None
        rewritten_from = begin if begin is not None and begin <= self._taken_to else None
        self._taken_to = self.last
        return Change(fresh, rewritten_from)

    def _void(self, step: int) -> None:
        before = self._changed_from
        self._changed_from = step if before is None else min(step, before)


@dataclass(frozen=True)
class News:
    """What has come to a history; None where nothing has."""

    steps: Change[Step] | None
    evaluations: Change[Evaluation] | None


@dataclass
class History:
    """The step of a Step counts from 0; that of an Evaluation says how many were done."""

    steps: Series[Step] = field(default_factory=Series)
    evaluations: Series[Evaluation] = field(default_factory=Series)

    def add(self, line: Step | Evaluation) -> None:
        """A step that comes again began another attempt: what was evaluated beyond it is void."""
        if isinstance(line, Evaluation):
            self.evaluations.put(line)
        else:
            if line.step <= self.steps.last:
                self.steps.remove_from(line.step)
                self.evaluations.remove_from(line.step + 1)
            self.steps.put(line)

    def take(self) -> News:
        """Since the last call."""
        return News(self.steps.take(), self.evaluations.take())

    def lines(self) -> list[Step | Evaluation]:
        """Steps, then evaluations."""
        steps: list[Step | Evaluation] = list(self.steps.lines.values())
        return steps + list(self.evaluations.lines.values())

    def clear(self) -> None:
        self.steps.remove_from(0)
        self.evaluations.remove_from(0)
