"""Timelines: what ranks did, or were expected to do, in one step."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from trireme.report.documents import read_document
from trireme.report.fields import Fields, Notes


@dataclass(frozen=True)
class Event:
    rank: int
    track: str
    kind: str
    name: str
    stage: int | None
    microbatch: int | None
    start_ms: float
    duration_ms: float


@dataclass
class Timeline:
    name: str  # predicted or measured
    step: int | None
    events: list[Event] = field(default_factory=list)

    def end_ms(self) -> float:
        return max((event.start_ms + event.duration_ms for event in self.events), default=0.0)


def _event(fields: Fields, track: str, begin_us: float) -> Event | None:
    rank, start = fields.whole("pid"), fields.number("ts")
    duration = fields.number("dur")
    if rank is None or start is None or duration is None:
        return None
    arguments = fields.child("args")
    return Event(
        rank,
        track,
        fields.text("cat") or "",
        fields.text("name") or "",
        arguments.whole("stage"),
        arguments.whole("microbatch"),
        (start - begin_us) / 1e3,
        duration / 1e3,
    )


def read_timelines(path: Path, notes: Notes) -> list[Timeline]:
    """The timelines of the file, each from the start of its first event. Raises NoDocument."""
    document = read_document(path, "trireme.timeline", notes)
    timelines = [
        Timeline(one.text("name") or "unnamed", one.whole("step"))
        for one in document.children("timelines")
    ]
    rows = [(row.whole("timeline"), row.text("track") or "") for row in document.children("rows")]
    found: dict[int, list[tuple[Fields, str]]] = {}
    lost = 0
    for fields in document.children("traceEvents"):
        if fields.text("ph") != "X":
            continue
        thread = fields.whole("tid") or 0
        index, track = rows[thread - 1] if 1 <= thread <= len(rows) else (None, "")
        if index is None or not 0 <= index < len(timelines):
            lost += 1
            continue
        found.setdefault(index, []).append((fields, track))
    for index, events in found.items():
        begin = min(fields.number("ts") or 0.0 for fields, _ in events)
        shown = [_event(fields, track, begin) for fields, track in events]
        timelines[index].events = [event for event in shown if event is not None]
        lost += len(shown) - len(timelines[index].events)
    if lost:
        notes.add(f"{path.name}: {lost} events cannot be placed and are left out")
    return timelines
