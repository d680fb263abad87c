"""The page about a run."""

from __future__ import annotations

from collections.abc import Sequence

from trireme.report import tables, units
from trireme.report.figures.figure import Figure
from trireme.report.figures.loss import loss_figure, parts_figure
from trireme.report.figures.memory import memory_figure
from trireme.report.figures.speed import (
    gradient_norm_figure,
    learning_rate_figure,
    reading_figure,
    step_time_figure,
    throughput_figure,
)
from trireme.report.figures.timeline import timeline_figure
from trireme.report.html_page import html_page
from trireme.report.markup import escape, items, paragraph, section
from trireme.report.run import Run, Segment


def _drawn(figures: Sequence[Figure | None], missing: str) -> str:
    drawn = [figure.html() for figure in figures if figure is not None]
    return "".join(drawn) or paragraph(missing, "missing")


def _plan(segment: Segment) -> str:
    title = f"<h3>{escape(segment.name())}</h3>\n"
    if segment.plan is None:
        return title + paragraph("No plan.", "missing")
    plan = segment.plan
    text = f"Plan {plan.file}: schedule {plan.schedule or 'unknown'}"
    if plan.objective:
        text += f", made for {plan.objective}" if plan.objective != "manual" else ", made by hand"
    if plan.step_ms is not None:
        text += f"; predicted step {units.milliseconds(plan.step_ms)}"
    if plan.lower_bound_ms is not None:
        bound = units.milliseconds(plan.lower_bound_ms)
        text += f", no plan for as many ranks can be faster than {bound}"
    return title + paragraph(text + ".") + tables.plan_table(segment, plan)


def _checkpoints(run: Run) -> str:
    if not run.checkpoints:
        return paragraph("No checkpoint is in the folder.", "missing")
    return items([f"step {step}" for step in run.checkpoints], "checkpoint-list")


def _examples(run: Run) -> str:
    if run.examples is None:
        return paragraph("The folder has no examples.txt.", "missing")
    return f'<pre id="example-text">{escape(run.examples)}</pre>\n'


def _notes(run: Run) -> str:
    if not run.notes.texts:
        return ""
    return section("notes", "What is missing or damaged", items(run.notes.texts, "note-list"))


def _sections(run: Run) -> list[str]:
    training = [
        loss_figure(run),
        parts_figure(run),
        learning_rate_figure(run),
        gradient_norm_figure(run),
    ]
    no_metrics = "No step was measured yet."
    return [
        section(
            "summary", "Summary", tables.overview(run), tables.segments(run), tables.options(run)
        ),
        _notes(run),
        section("training", "Training", _drawn(training, no_metrics)),
        section(
            "speed",
            "Speed",
            _drawn(
                [step_time_figure(run), throughput_figure(run), reading_figure(run)], no_metrics
            ),
        ),
        section(
            "timelines",
            "Timelines",
            _drawn([timeline_figure(segment) for segment in run.segments], "No timeline yet."),
        ),
        section(
            "memory",
            "Memory",
            _drawn([memory_figure(one) for one in run.segments], "Neither predicted nor measured."),
        ),
        section("plans", "Plans", *[_plan(segment) for segment in run.segments]),
        section("checkpoints", "Checkpoints", _checkpoints(run)),
        section("examples", "Examples", _examples(run)),
    ]


def _title(run: Run) -> str:
    when = run.segments[-1].started[:10] if run.segments else ""
    return f"Training of {run.model} in {run.folder.resolve().name}" + (f", {when}" if when else "")


def page(run: Run) -> str:
    """The page about a run."""
    return html_page(_title(run), _sections(run))
