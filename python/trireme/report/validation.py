"""What `trireme validate --json` printed: published runs beside their predictions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from trireme.report.documents import NoDocument, read_json
from trireme.report.fields import Fields, Notes


@dataclass(frozen=True)
class JudgedRun:
    """Seconds of a step, and bytes of the fullest device: None where its source does not say them."""

    row: int | None
    model: str
    measured_s: float
    predicted_s: float
    linear_s: float | None
    measured_bytes: float | None
    predicted_bytes: float | None


@dataclass(frozen=True)
class Errors:
    """Over a group's runs; fractions of what was measured."""

    median: float | None
    mean: float | None
    worst: float | None
    bias: float | None
    rank_correlation: float | None


@dataclass(frozen=True)
class JudgedGroup:
    name: str
    predicted: Errors
    linear: Errors
    memory: Errors | None
    runs: list[JudgedRun]

    def short_name(self) -> str:
        """Source and device, each cut where it is long."""
        return " @ ".join(
            part if len(part) <= 40 else part[:39] + "…" for part in self.name.split(" @ ", 1)
        )


@dataclass(frozen=True)
class Validation:
    calibration_runs: int | None
    groups: list[JudgedGroup]
    all: JudgedGroup


def _errors(fields: Fields) -> Errors:
    return Errors(*map(fields.number, ("median", "mean", "worst", "bias", "rank_correlation")))


def _run(fields: Fields) -> JudgedRun | None:
    """None where a time is missing."""
    measured, predicted = fields.positive("measured_s"), fields.positive("predicted_s")
    if measured is None or predicted is None:
        return None
    return JudgedRun(
        fields.whole("row"),
        fields.text("model") or "",
        measured,
        predicted,
        fields.number("linear_s"),
        fields.positive("measured_bytes"),
        fields.positive("predicted_bytes"),
    )


def _group(fields: Fields, name: str, runs: list[JudgedRun]) -> JudgedGroup:
    memory = _errors(fields.child("memory")) if "memory" in fields else None
    return JudgedGroup(
        name, _errors(fields.child("predicted")), _errors(fields.child("linear")), memory, runs
    )


def read_validation(path: Path, notes: Notes) -> Validation:
    """Raises NoDocument where the file is not what `validate --json` prints."""
    body = read_json(path)
    if not isinstance(body, dict) or not {"groups", "runs", "all"} <= body.keys():
        raise NoDocument(
            f"{path} is neither a run's folder nor what `trireme validate --json` prints"
        )
    fields = Fields(body, path.name, notes)
    runs: dict[str, list[JudgedRun]] = {}
    for number, one in enumerate(fields.children("runs")):
        run = _run(one)
        if run is None:
            notes.add(f"{path.name}: runs[{number}] has no times, and is left out")
        else:
            runs.setdefault(one.text("group") or "", []).append(run)
    groups = []
    for one in fields.children("groups"):
        name = one.text("name") or ""
        groups.append(_group(one, name, runs.get(name, [])))
    every = [run for group in groups for run in group.runs]
    return Validation(
        fields.whole("calibration_runs"), groups, _group(fields.child("all"), "all", every)
    )
