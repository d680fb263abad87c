"""Losses over steps, and what else is measured by name, each on an axis of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import plotly.graph_objects as go
from plotly.subplots import make_subplots

from trireme.report.figures.figure import Figure
from trireme.report.figures.theme import HELD_OUT, MEASURED, TEMPLATE, mark_segments, new_figure
from trireme.report.markup import escape
from trireme.report.metrics import Evaluation, Metrics, Step
from trireme.report.run import Run

Value = Callable[[Step | Evaluation], float | None]


@dataclass(frozen=True)
class Panel:
    """One row of a figure, and what it shows."""

    row: int
    value: Value
    is_first: bool


def _add_training(figure: go.Figure, metrics: Metrics, panel: Panel) -> None:
    """A line for each attempt; the legend has the name once."""
    for number, steps in enumerate(metrics.attempts):
        figure.add_scatter(
            x=[step.step for step in steps],
            y=[panel.value(step) for step in steps],
            name="training",
            legendgroup="training",
            showlegend=panel.is_first and number == 0,
            line={"color": MEASURED, "width": 1.5},
            mode="lines" if len(steps) > 1 else "markers",
            row=panel.row,
            col=1,
        )


def _add_held_out(figure: go.Figure, metrics: Metrics, panel: Panel) -> None:
    if not metrics.evaluations:
        return
    figure.add_scatter(
        x=[one.step for one in metrics.evaluations],
        y=[panel.value(one) for one in metrics.evaluations],
        name="held out",
        legendgroup="held out",
        showlegend=panel.is_first,
        mode="lines+markers",
        line={"color": HELD_OUT, "width": 1, "dash": "dot"},
        marker={"size": 8},
        row=panel.row,
        col=1,
    )


def _mark_not_finite(figure: go.Figure, metrics: Metrics) -> None:
    """Crosses at the bottom, where a line has a hole."""
    bad = metrics.not_finite()
    finite = [step.loss for step in metrics.steps() if math.isfinite(step.loss)]
    if bad:
        figure.add_scatter(
            x=bad,
            y=[min(finite, default=0.0)] * len(bad),
            name="not finite",
            mode="markers",
            marker={"symbol": "x", "size": 8, "color": "#c0504d"},
        )


def _change(values: list[float]) -> str:
    known = [value for value in values if math.isfinite(value)]
    return f"from {known[0]:.4g} to {known[-1]:.4g}" if known else "never finite"


def _summary(metrics: Metrics) -> str:
    """For those who do not see the figure."""
    text = f"Training loss {_change([step.loss for step in metrics.steps()])}."
    if metrics.evaluations:
        text += f" Held-out loss {_change([one.loss for one in metrics.evaluations])}."
    bad = metrics.not_finite()
    return text + (f" Not finite in {len(bad)} steps, first in step {bad[0]}." if bad else "")


def loss_figure(run: Run) -> Figure | None:
    metrics = run.metrics
    if not metrics.attempts and not metrics.evaluations:
        return None
    figure = make_subplots(rows=1, cols=1, figure=new_figure("step", "loss", 380))
    panel = Panel(1, lambda one: one.loss, is_first=True)
    _add_training(figure, metrics, panel)
    _add_held_out(figure, metrics, panel)
    _mark_not_finite(figure, metrics)
    mark_segments(figure, run.segments)
    return Figure(
        "loss",
        "Loss",
        "Of each training step, and of held-out data. Dotted lines: where a segment begins, on how "
        "many ranks (stages × replicas).",
        figure,
        _summary(metrics),
    )


def _part(name: str, one: Step | Evaluation) -> float | None:
    return one.by_name.get(name)


def parts_figure(run: Run) -> Figure | None:
    """Losses that the loss is made of, and metrics beside it; None where there are none."""
    names = run.metrics.parts()
    if not names:
        return None
    figure = make_subplots(
        rows=len(names), cols=1, shared_xaxes=True, vertical_spacing=0.2 / len(names)
    )
    for row, name in enumerate(names, start=1):
        panel = Panel(row, partial(_part, name), is_first=row == 1)
        _add_training(figure, run.metrics, panel)
        _add_held_out(figure, run.metrics, panel)
        figure.update_yaxes(title=escape(name), row=row, col=1)
    figure.update_layout(template=TEMPLATE, height=110 + 190 * len(names), hovermode="x unified")
    figure.update_xaxes(title="step", row=len(names), col=1)
    return Figure(
        "parts",
        "By name",
        "Losses that the loss is made of, and metrics beside it, each on its own axis.",
        figure,
        "Over the steps: " + ", ".join(names) + ".",
    )
