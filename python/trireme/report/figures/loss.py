"""Losses over steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import plotly.graph_objects as go

from trireme.report.figures.figure import Figure
from trireme.report.figures.theme import HELD_OUT, MEASURED, SERIES, mark_segments, new_figure
from trireme.report.markup import escape
from trireme.report.metrics import Step
from trireme.report.run import Run

Losses = Sequence[float | None]


@dataclass(frozen=True)
class Line:
    name: str
    color: str
    width: float


def _by_name(steps: list[Step]) -> dict[str, Losses]:
    """Each loss over the steps; nothing where there is only one."""
    names = sorted({name for step in steps for name in step.by_name})
    if len(names) < 2:
        return {}
    return {name: [step.by_name.get(name) for step in steps] for name in names}


def _add_line(figure: go.Figure, steps: list[Step], losses: Losses, line: Line) -> None:
    """One attempt's losses of one name; the legend has each name once."""
    name = escape(line.name)
    figure.add_scatter(
        x=[step.step for step in steps],
        y=losses,
        name=name,
        legendgroup=name,
        showlegend=all(trace.name != name for trace in figure.data),
        line={"color": line.color, "width": line.width},
        mode="lines" if len(steps) > 1 else "markers",
    )


def loss_figure(run: Run) -> Figure | None:
    metrics = run.metrics
    if not metrics.attempts and not metrics.evaluations:
        return None
    figure = new_figure("step", "loss", 380)
    for steps in metrics.attempts:
        _add_line(figure, steps, [step.loss for step in steps], Line("training", MEASURED, 1.5))
        colors = cycle(SERIES[1:])
        for name, losses in _by_name(steps).items():
            _add_line(figure, steps, losses, Line(name, next(colors), 1))
    if metrics.evaluations:
        figure.add_scatter(
            x=[one.step for one in metrics.evaluations],
            y=[one.loss for one in metrics.evaluations],
            name="held out",
            mode="lines+markers",
            line={"color": HELD_OUT, "width": 1, "dash": "dot"},
            marker={"size": 8},
        )
    mark_segments(figure, run.segments)
    return Figure(
        "loss",
        "Loss",
        "Of each training step, and of held-out data. "
        "Dotted lines: where a segment begins, on how many ranks (stages × replicas).",
        figure,
    )
