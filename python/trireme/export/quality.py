"""Which number of a run's evaluations says how good it is, and how good it should be."""

from __future__ import annotations

from dataclasses import dataclass

from trireme.export.exported_run import ExportedRun
from trireme.export.history import History
from trireme.export.mlperf_values import number_or_text
from trireme.export.writer import ExportError
from trireme.report.metrics import Evaluation


@dataclass(frozen=True)
class WantedQuality:
    """What was asked for; None: as the run has it."""

    by: str | None = None
    is_most: bool | None = None
    target: float | None = None


@dataclass(frozen=True)
class Quality:
    by: str  # a loss or metric by name; empty: the loss
    is_most: bool  # more is better
    target: float | None

    def value(self, evaluation: Evaluation) -> float:
        """Raises ExportError where it has none of that name."""
        if not self.by:
            return evaluation.loss
        if self.by not in evaluation.by_name:
            names = ", ".join(sorted(evaluation.by_name)) or "none"
            raise ExportError(
                f"the evaluation after {evaluation.step} steps has no {self.by!r}; it has {names}: "
                "choose with --best-by"
            )
        return evaluation.by_name[self.by]

    def is_met(self, history: History) -> bool:
        if self.target is None:
            return False
        values = [self.value(one) for one in history.evaluations.lines.values()]
        sign = 1 if self.is_most else -1
        return any(sign * value >= sign * self.target for value in values)


def quality_of(run: ExportedRun, wanted: WantedQuality) -> Quality:
    """Raises ExportError where a target is known, but not whether more is better."""
    own_by = _own_name(run)
    by = own_by if wanted.by is None else wanted.by
    is_most = wanted.is_most
    if is_most is None and by == own_by:
        is_most = _own_direction(run)
    target = wanted.target
    if target is None and by == own_by:
        target = _own_target(run)
    if is_most is None and target is not None and by:
        raise ExportError(f"is more of {by!r} better? Say --best-is-most or --best-is-least")
    return Quality(by, bool(is_most), target)


def _own_name(run: ExportedRun) -> str:
    if run.best is not None:
        return run.best.text("by") or ""
    return run.given.get("best-by", [""])[0]


def _own_direction(run: ExportedRun) -> bool | None:
    """None where nothing says it."""
    if run.best is not None:
        return run.best.flag("is_most")
    if "best-by" in run.given:
        return run.given.get("best-is-most", ["false"])[0] == "true"
    return None


def _own_target(run: ExportedRun) -> float | None:
    target = number_or_text(run.given.get("target", [""])[0])
    return None if isinstance(target, str) else target
