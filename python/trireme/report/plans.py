"""Plans: stages, where they run, what was predicted."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trireme.report.documents import read_document
from trireme.report.fields import Fields, Notes


@dataclass(frozen=True)
class Stage:
    begin: int | None
    end: int | None
    num_copies: int
    ranks: list[int]
    limit: str

    def num_nodes(self) -> int | None:
        return None if self.begin is None or self.end is None else self.end - self.begin


@dataclass
class Plan:
    file: str
    objective: str = ""
    schedule: str = ""
    stages: list[Stage] = field(default_factory=list)
    step_ms: float | None = None
    lower_bound_ms: float | None = None
    peak_bytes: list[dict[str, float]] = field(default_factory=list)


def _ranks_of(role: Fields, stage: Fields, index: int) -> list[int]:
    """The ranks at the stage's position in the pipeline, by default its index, each once."""
    mesh = role.child("mesh")
    each = max((mesh.whole("data") or 1) * (mesh.whole("shard") or 1), 1)
    position = stage.whole("position") if "position" in stage else index
    if position is None or position < 0:
        return []
    begin = position * each
    return list(dict.fromkeys(role.whole_numbers("placement")[begin : begin + each]))


def read_plan(path: Path, notes: Notes) -> Plan:
    """Raises NoDocument."""
    document = read_document(path, "trireme.plan", notes)
    prediction = document.child("prediction")
    limits = prediction.texts("limits")
    roles = [role for role in document.children("roles") if role.text("name") == "train"]
    role = roles[0] if roles else Fields(None, path.name, notes)
    stages = []
    for index, stage in enumerate(document.children("stages")):
        stages.append(
            Stage(
                stage.whole("begin"),
                stage.whole("end"),
                len(stage.texts("copies")),
                _ranks_of(role, stage, index),
                limits[index] if index < len(limits) else "",
            )
        )
    return Plan(
        path.name,
        document.text("objective") or "",
        document.child("schedule").text("name") or "",
        stages,
        prediction.positive("step_ms"),
        prediction.number("lower_bound_ms"),
        [rank.all_numbers() for rank in prediction.children("peak_bytes")],
    )
