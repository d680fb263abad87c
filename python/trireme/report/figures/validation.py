"""Published runs beside their predictions: steps, their errors by group, and memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import plotly.graph_objects as go

from trireme.report.figures.figure import Figure
from trireme.report.figures.theme import INK, MEASURED, PREDICTED, SERIES, new_figure
from trireme.report.markup import escape
from trireme.report.units import error, signed_percent
from trireme.report.validation import JudgedGroup, JudgedRun, Validation

_SYMBOLS = ("circle", "square", "diamond", "cross", "triangle-up", "star")
_GIB = 1 << 30

Pair = Callable[[JudgedRun], tuple[float, float] | None]


def _points(
    groups: Sequence[JudgedGroup], pair: Pair
) -> list[list[tuple[JudgedRun, float, float]]]:
    """For each group its runs, measured and predicted."""
    return [
        [(run, *both) for run in group.runs if (both := pair(run)) is not None] for group in groups
    ]


def _scatter(groups: Sequence[JudgedGroup], pair: Pair, unit: str) -> go.Figure | None:
    """Predicted over measured, both on logarithmic axes, with the line on which they are equal."""
    points = _points(groups, pair)
    values = [value for group in points for _, *both in group for value in both]
    if not values:
        return None
    figure = new_figure(f"measured, {unit}", f"predicted, {unit}", 520)
    figure.update_layout(hovermode="closest", legend={"font": {"size": 11}})
    figure.update_xaxes(type="log")
    figure.update_yaxes(type="log")
    ends = [min(values), max(values)]
    figure.add_scatter(
        x=ends, y=ends, name="equal", mode="lines", line={"color": INK, "width": 1, "dash": "dot"}
    )
    for number, (group, of_group) in enumerate(zip(groups, points, strict=True)):
        if not of_group:
            continue
        figure.add_scatter(
            x=[measured for _, measured, _ in of_group],
            y=[predicted for _, _, predicted in of_group],
            text=[
                escape(f"row {run.row}: {run.model}, {signed_percent(error(predicted, measured))}")
                for run, measured, predicted in of_group
            ],
            hovertemplate="%{text}<extra></extra>",
            name=escape(group.short_name()),
            mode="markers",
            marker={
                "color": SERIES[number % len(SERIES)],
                "symbol": _SYMBOLS[number // len(SERIES) % len(_SYMBOLS)],
                "size": 8,
                "opacity": 0.75,
            },
        )
    return figure


def _step(run: JudgedRun) -> tuple[float, float]:
    return run.measured_s, run.predicted_s


def _memory(run: JudgedRun) -> tuple[float, float] | None:
    if run.measured_bytes is None or run.predicted_bytes is None:
        return None
    return run.measured_bytes / _GIB, run.predicted_bytes / _GIB


def steps_figure(validation: Validation) -> Figure | None:
    plot = _scatter(validation.groups, _step, "s a step")
    if plot is None:
        return None
    return Figure(
        "steps",
        "Steps",
        "A point is a run: above the dotted line it is predicted slower than it was.",
        plot,
    )


def peaks_figure(validation: Validation) -> Figure | None:
    """None where no run says its memory."""
    plot = _scatter(validation.groups, _memory, "GiB on the fullest device")
    if plot is None:
        return None
    return Figure(
        "peaks",
        "Memory",
        "Of the runs whose source says what the fullest device held.",
        plot,
    )


def errors_figure(validation: Validation) -> Figure | None:
    """A box for each group and way to predict."""
    groups = [group for group in validation.groups if group.runs]
    if not groups:
        return None
    figure = new_figure("predicted over measured, less one, %", "", 90 + 46 * len(groups))
    figure.update_layout(boxmode="group", hovermode="closest")
    figure.update_yaxes(autorange="reversed")
    ways: list[tuple[str, str, Callable[[JudgedRun], float | None]]] = [
        ("prediction", MEASURED, lambda run: run.predicted_s),
        ("linear fit", PREDICTED, lambda run: run.linear_s),
    ]
    for name, color, predicted in ways:
        pairs = [
            (group.short_name(), 100 * off)
            for group in groups
            for run in group.runs
            if (off := error(predicted(run), run.measured_s)) is not None
        ]
        figure.add_box(
            x=[off for _, off in pairs],
            y=[escape(group) for group, _ in pairs],
            name=name,
            orientation="h",
            marker={"color": color, "size": 4},
            line={"width": 1},
        )
    return Figure(
        "errors",
        "Errors of steps by group",
        "A box holds half of a group's runs, its line is their median; beside each the linear fit with eight "
        "coefficients on the same runs.",
        figure,
    )
