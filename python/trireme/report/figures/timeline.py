"""What ranks did in one step: predicted above measured, on one scale of time."""

from __future__ import annotations

from collections import defaultdict

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from trireme.report.figures.figure import Figure
from trireme.report.figures.theme import TEMPLATE
from trireme.report.markup import escape
from trireme.report.run import Segment
from trireme.report.timelines import Event, Timeline

MAX_EVENTS = 20_000  # of a timeline; a browser draws this many in about two seconds

COLORS = {
    "forward": "#2a6fb0",
    "backward": "#d1651f",
    "weights": "#3d9a6b",
    "communication": "#8a5fb5",
    "waiting": "#cbd2d9",
    "other": "#52606d",
}
_CLASSES = {
    "F": "forward",
    "B": "backward",
    "I": "backward",
    "W": "weights",
    "update": "weights",
    "tie": "weights",
    "commit": "weights",
    "norm": "weights",
    "send": "communication",
    "recv": "communication",
    "reduce": "communication",
    "join": "communication",
    "exchange": "communication",
    "weigh": "communication",
}


def class_of(event: Event) -> str:
    if event.track == "wait":
        return "waiting"
    return _CLASSES.get(event.kind, "other")


def row_of(event: Event) -> str:
    """A rank's work and its waiting share a row; other tracks have rows of their own."""
    name = f"rank {event.rank}"
    return name if event.track in ("compute", "wait") else f"{name} {event.track}"


def rows_of(timelines: list[Timeline]) -> list[str]:
    """All rows, by rank."""
    found = {(event.rank, row_of(event)) for one in timelines for event in one.events}
    return [name for _, name in sorted(found)]


def _hover(event: Event) -> str:
    place = []
    if event.stage is not None:
        place.append(f"stage {event.stage}")
    if event.microbatch is not None:
        place.append(f"microbatch {event.microbatch}")
    end = event.start_ms + event.duration_ms
    waiting = "waiting: " if class_of(event) == "waiting" else ""
    lines = [
        f"<b>{waiting}{escape(event.name)}</b> {escape(row_of(event))}",
        ", ".join(place),
        f"{event.start_ms:.3f} to {end:.3f} ms, {event.duration_ms:.3f} ms",
    ]
    return "<br>".join(line for line in lines if line)


def _bars(name: str, events: list[Event], rows: list[str], is_new: bool) -> go.Bar:
    """The events of one class. Rows are numbers: row i is at height i."""
    at = {row: index for index, row in enumerate(rows)}
    is_action = name in ("forward", "backward")
    return go.Bar(
        base=[event.start_ms for event in events],
        x=[event.duration_ms for event in events],
        y=[at[row_of(event)] for event in events],
        width=0.3 if name == "waiting" else 0.8,
        orientation="h",
        name=name,
        legendgroup=name,
        showlegend=is_new,
        marker={"color": COLORS[name], "line": {"width": 0.5, "color": "white"}},
        text=[event.microbatch if is_action else None for event in events],
        textposition="inside",
        insidetextanchor="middle",
        textangle=0,
        hovertext=[_hover(event) for event in events],
        hoverinfo="text",
    )


def _shown(timeline: Timeline) -> list[Event]:
    """All events, or the longest where a browser could not draw them all."""
    if len(timeline.events) <= MAX_EVENTS:
        return timeline.events
    longest = sorted(timeline.events, key=lambda event: event.duration_ms, reverse=True)
    return longest[:MAX_EVENTS]


def _add_panel(figure: go.Figure, timeline: Timeline, rows: list[str], row: int) -> None:
    by_class: dict[str, list[Event]] = defaultdict(list)
    for event in _shown(timeline):
        by_class[class_of(event)].append(event)
    drawn = {trace.name for trace in figure.data}
    for name in COLORS:
        if name in by_class:
            figure.add_trace(_bars(name, by_class[name], rows, name not in drawn), row=row, col=1)


def _panel_title(timeline: Timeline) -> str:
    step = f", step {timeline.step}" if timeline.step is not None else ""
    shown = "" if len(timeline.events) <= MAX_EVENTS else f", the {MAX_EVENTS} longest events"
    return escape(f"{timeline.name}{step}: {timeline.end_ms():.1f} ms{shown}")


def draw(timelines: list[Timeline]) -> go.Figure:
    """Timelines with events, predicted ones first, below each other on one scale."""
    timelines = sorted(timelines, key=lambda timeline: timeline.name != "predicted")
    rows = rows_of(timelines)
    pixels = max(22 * len(rows), 70)
    gap = 60 / (len(timelines) * (pixels + 60))
    figure = make_subplots(
        rows=len(timelines),
        cols=1,
        shared_xaxes=True,
        vertical_spacing=gap if len(timelines) > 1 else 0,
        subplot_titles=[_panel_title(timeline) for timeline in timelines],
    )
    for row, timeline in enumerate(timelines, start=1):
        _add_panel(figure, timeline, rows, row)
    figure.update_layout(
        template=TEMPLATE,
        barmode="overlay",
        height=len(timelines) * (pixels + 60) + 110,
        margin={"l": 90, "t": 70},
        legend={"y": 1 + 30 / (len(timelines) * (pixels + 60))},
        uniformtext={"mode": "hide", "minsize": 9},
    )
    figure.update_annotations(x=0, xanchor="left", font={"size": 13})
    figure.update_yaxes(
        tickvals=list(range(len(rows))),
        ticktext=[escape(row) for row in rows],
        range=[len(rows) - 0.4, -0.6],
        showgrid=False,
    )
    end = max(timeline.end_ms() for timeline in timelines)
    figure.update_xaxes(range=[0, end * 1.01], showticklabels=True)
    figure.update_xaxes(title="ms from the start of the step", row=len(timelines), col=1)
    return figure


def timeline_figure(segment: Segment) -> Figure | None:
    """None where the segment has no timeline with events."""
    timelines = [timeline for timeline in segment.timelines if timeline.events]
    if not timelines:
        return None
    return Figure(
        f"timeline-{segment.index}",
        f"Timeline of a step, {segment.name()}",
        "A row is a rank; numbers are microbatches. Thin grey bars: the rank waits. Drag to zoom.",
        draw(timelines),
    )
