"""Losses over steps."""

from __future__ import annotations

import plotly.graph_objects as go

from trireme.report.figures.figure import Figure
from trireme.report.figures.theme import HELD_OUT, MEASURED, SERIES, mark_segments, new_figure
from trireme.report.markup import escape
from trireme.report.metrics import Step
from trireme.report.run import Run


def _by_name(steps: list[Step]) -> dict[str, list[float | None]]:
    """Each loss over the steps; nothing where there is only one."""
    names = sorted({name for step in steps for name in step.by_name})
    if len(names) < 2:
        return {}
    return {name: [step.by_name.get(name) for step in steps] for name in names}


def _add_attempt(figure: go.Figure, steps: list[Step], is_first: bool) -> None:
    x = [step.step for step in steps]
    figure.add_scatter(
        x=x,
        y=[step.loss for step in steps],
        name="training",
        legendgroup="training",
        showlegend=is_first,
        line={"color": MEASURED, "width": 1.5},
        mode="lines" if len(steps) > 1 else "markers",
    )
    for (name, losses), color in zip(_by_name(steps).items(), SERIES[1:], strict=False):
        figure.add_scatter(
            x=x,
            y=losses,
            name=escape(name),
            legendgroup=escape(name),
            showlegend=is_first,
            line={"width": 1, "color": color},
            mode="lines",
        )


def loss_figure(run: Run) -> Figure | None:
    metrics = run.metrics
    if not metrics.attempts and not metrics.evaluations:
        return None
    figure = new_figure("step", "loss", 380)
    for number, steps in enumerate(metrics.attempts):
        _add_attempt(figure, steps, is_first=number == 0)
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
