"""Time per step and samples per second, measured and predicted; learning rate; gradient norm."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

import plotly.graph_objects as go

from trireme.report.figures.figure import Figure
from trireme.report.figures.theme import (
    HELD_OUT,
    MEASURED,
    PREDICTED,
    SERIES,
    mark_segments,
    new_figure,
)
from trireme.report.metrics import Step
from trireme.report.run import Run, Segment, is_finite

Value = Callable[[Step], float | None]


def _add_steps(figure: go.Figure, run: Run, value: Value, name: str, color: str) -> list[float]:
    """Draws what all steps have, an interrupted line per attempt. Returns the values."""
    seen: list[float] = []
    for steps in run.metrics.attempts:
        points = [(step.step, value(step)) for step in steps]
        good = [(x, y) for x, y in points if y is not None and is_finite(y)]
        if not good:
            continue
        figure.add_scatter(
            x=[x for x, _ in good],
            y=[y for _, y in good],
            name=name,
            legendgroup=name,
            showlegend=not seen,
            line={"color": color, "width": 1.2},
            mode="lines" if len(good) > 1 else "markers",
        )
        seen += [y for _, y in good]
    return seen


def _add_predictions(figure: go.Figure, run: Run, of: Callable[[Segment], float | None]) -> float:
    """A dashed line over each segment that has a prediction. Returns the largest."""
    largest = 0.0
    for segment in run.segments:
        value = of(segment)
        end = segment.end()
        if value is None or segment.first_step is None or end is None:
            continue
        figure.add_scatter(
            x=[segment.first_step - 0.5, end - 0.5],
            y=[value, value],
            name="predicted",
            legendgroup="predicted",
            showlegend=largest == 0,
            line={"color": PREDICTED, "width": 2, "dash": "dash"},
            mode="lines",
        )
        largest = max(largest, value)
    return largest


def _fit(figure: go.Figure, values: list[float], at_least: float) -> str:
    """From zero to what nearly all steps need. Returns what the caption says of the others."""
    ordered = sorted(values)
    usual = ordered[min(len(ordered) - 1, int(0.98 * len(ordered)))]
    top = 1.15 * max(usual, at_least)
    figure.update_yaxes(range=[0, top])
    above = sum(value > top for value in values)
    return f" {above} of {len(values)} steps lie above the figure." if above else ""


def step_time_figure(run: Run) -> Figure | None:
    figure = new_figure("step", "time of a step in ms")
    values = _add_steps(figure, run, lambda step: step.step_ms, "measured", MEASURED)
    if not values:
        return None
    _add_steps(figure, run, lambda step: step.data_wait_ms, "waiting for data", HELD_OUT)
    predicted = _add_predictions(figure, run, lambda segment: segment.predicted_step_ms)
    more = _fit(figure, values, predicted)
    mark_segments(figure, run.segments)
    caption = "Measured, against what the plan predicts." + more
    return Figure("step-time", "Time per step", caption, figure)


def throughput_figure(run: Run) -> Figure | None:
    def predicted_rate(segment: Segment) -> float | None:
        if run.global_batch is None or segment.predicted_step_ms is None:
            return None
        return run.global_batch / segment.predicted_step_ms * 1e3

    figure = new_figure("step", "samples per second")
    values = _add_steps(figure, run, lambda step: step.samples_per_s, "measured", MEASURED)
    if not values:
        return None
    more = _fit(figure, values, _add_predictions(figure, run, predicted_rate))
    mark_segments(figure, run.segments)
    caption = "Global batch by time of the step, measured and predicted." + more
    return Figure("throughput", "Throughput", caption, figure)


def reading_figure(run: Run) -> Figure | None:
    """What reading takes, beside what a step takes; nothing of a run whose metrics do not say it."""
    figure = new_figure("step", "time in ms", 260)
    values = _add_steps(figure, run, lambda step: step.read_ms, "reading", SERIES[0])
    if not values:
        return None
    steps = _add_steps(figure, run, lambda step: step.step_ms, "a step", MEASURED)
    values += _add_steps(
        figure, run, lambda step: step.decode_ms, "decoding, all threads", SERIES[1]
    )
    more = _fit(figure, values + steps, 0)
    mark_segments(figure, run.segments)
    caption = (
        "How long the first rank's thread read ahead, from one step to the next. Where that is as long as the step, it "
        "never rests, and reading keeps up only if microbatches lie ready." + _medians(run) + more
    )
    return Figure("reading", "Reading", caption, figure)


def _medians(run: Run) -> str:
    steps = run.metrics.steps()
    rates = [step.read_mb_per_s for step in steps if step.read_mb_per_s is not None]
    ready = [step.batches_ready for step in steps if step.batches_ready is not None]
    text = f" Medians: {median(rates):.3g} MB/s from files" if rates else ""
    if ready:
        text += ("; " if text else " Median: ") + (
            f"{median(ready):.3g} microbatches were ready when one was asked for"
        )
    return text and text + "."


def learning_rate_figure(run: Run) -> Figure | None:
    figure = new_figure("step", "learning rate", 260)
    if not _add_steps(figure, run, lambda step: step.learning_rate, "learning rate", SERIES[1]):
        return None
    figure.update_layout(showlegend=False)
    figure.update_yaxes(rangemode="tozero", exponentformat="e")
    mark_segments(figure, run.segments)
    return Figure("learning-rate", "Learning rate", "Of each step.", figure)


def gradient_norm_figure(run: Run) -> Figure | None:
    figure = new_figure("step", "gradient norm", 260)
    if not _add_steps(figure, run, lambda step: step.gradient_norm, "gradient norm", SERIES[2]):
        return None
    figure.update_layout(showlegend=False)
    figure.update_yaxes(rangemode="tozero")
    mark_segments(figure, run.segments)
    return Figure("gradient-norm", "Gradient norm", "Of each step, before clipping.", figure)
