"""The tables of the page."""

from __future__ import annotations

import math

from trireme.report import units
from trireme.report.figures.theme import plan_text
from trireme.report.markup import facts, table
from trireme.report.plans import Plan
from trireme.report.run import Run, Segment


def _change(losses: list[float]) -> str:
    if not losses:
        return units.DASH
    return f"{units.loss(losses[0])} → {units.loss(losses[-1])}"


def _repeated(run: Run) -> list[tuple[str, str]]:
    again, same = run.metrics.repeated()
    if not again:
        return []
    return [("steps trained again", f"{again}, of which {same} with exactly the same loss")]


def _held_out(run: Run) -> list[tuple[str, str]]:
    """A pair for each loss and metric that has a name of its own."""
    evaluations = run.metrics.evaluations
    names = run.metrics.parts()
    return [
        (f"held-out {name}", _change([one.by_name.get(name, math.nan) for one in evaluations]))
        for name in names
        if any(name in one.by_name for one in evaluations)
    ]


def _not_finite(run: Run) -> list[tuple[str, str]]:
    bad = run.metrics.not_finite()
    return [("loss not finite", f"{len(bad)} steps, first in step {bad[0]}")] if bad else []


def _start(run: Run) -> list[tuple[str, str]]:
    """When and where it began, and when it was last started."""
    started = [one.started.replace("T", " ").replace("Z", " UTC") for one in run.segments]
    hosts = sorted({one.host for one in run.segments if one.host})
    pairs = [("started", started[0])] if started and started[0] else []
    if len(started) > 1 and started[-1]:
        pairs.append(("last started", started[-1]))
    if hosts:
        pairs.append(("host" if len(hosts) == 1 else "hosts", ", ".join(hosts)))
    return pairs


def overview(run: Run) -> str:
    """What was trained, and what came of it."""
    steps = run.metrics.steps()
    pairs = [
        ("model", run.model),
        ("steps", str(max((step.step for step in steps), default=-1) + 1)),
        ("training loss", _change([step.loss for step in steps])),
        ("held-out loss", _change([one.loss for one in run.metrics.evaluations])),
        *_held_out(run),
        *_not_finite(run),
        (
            "batch",
            f"{units.whole(run.global_batch)}, microbatches of {units.whole(run.microbatch)}, "
            f"{units.whole(run.lanes)} lanes",
        ),
        ("seed", units.whole(run.seed)),
        *_start(run),
        *_repeated(run),
    ]
    return facts(pairs, "overview")


def options(run: Run) -> str:
    """Nothing where none were given."""
    if not run.options:
        return ""
    rows = sorted(run.options.items())
    listed = table(("option", "value"), rows, "options")
    return f"<details><summary>Options</summary>{listed}</details>\n"


def _largest(values: list[float]) -> float | None:
    return max(values, default=None)


def _ending(segment: Segment) -> str:
    if segment.stopped_at is not None:
        return "by a signal"
    return "as asked" if segment.is_done else "unknown"


def _segment_row(segment: Segment) -> list[str]:
    predicted, measured = segment.predicted_step_ms, segment.step_ms()
    predicted_peak = _largest(segment.predicted_peaks())
    peak = _largest(segment.peak_bytes)
    return [
        segment.name().removeprefix("steps "),
        units.whole(segment.ranks),
        plan_text(segment),
        units.milliseconds(predicted),
        units.milliseconds(measured),
        units.signed_percent(units.error(predicted, measured)),
        units.memory(predicted_peak),
        units.memory(peak),
        units.signed_percent(units.error(predicted_peak, peak)),
        units.percent(segment.data_wait_fraction),
        _ending(segment),
    ]


def segments(run: Run) -> str:
    """A row for each segment: predicted against measured."""
    head = (
        "steps",
        "ranks",
        "plan",
        "step predicted",
        "measured",
        "error",
        "peak predicted",
        "measured",
        "error",
        "waits for data",
        "ended",
    )
    return table(head, [_segment_row(segment) for segment in run.segments], "segments")


def plan_table(segment: Segment, plan: Plan) -> str:
    """A row for each stage."""
    rows = []
    for index, stage in enumerate(plan.stages):
        nodes = units.DASH
        if stage.num_nodes() is not None:
            nodes = f"{stage.begin}..{(stage.end or 0) - 1} ({stage.num_nodes()})"
        rows.append(
            [
                str(index),
                nodes,
                str(stage.num_copies or units.DASH),
                ", ".join(map(str, stage.ranks)) or units.DASH,
                stage.limit or units.DASH,
            ]
        )
    head = ("stage", "nodes (how many)", "copies", "ranks", "what limits it")
    return table(head, rows, f"plan-{segment.index}")
