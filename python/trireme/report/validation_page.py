"""The page about predictions of published runs."""

from __future__ import annotations

from trireme.report import units
from trireme.report.fields import Notes
from trireme.report.figures.validation import errors_figure, peaks_figure, steps_figure
from trireme.report.html_page import html_page
from trireme.report.markup import items, paragraph, section, table
from trireme.report.validation import Errors, JudgedGroup, Validation

_HEAD = (
    "judged group",
    "runs",
    "median",
    "mean",
    "worst",
    "bias",
    "rank correlation",
    "linear fit: median",
    "mean",
    "rank correlation",
    "memory: median",
)


def _correlation(errors: Errors) -> str:
    return units.DASH if errors.rank_correlation is None else f"{errors.rank_correlation:.3f}"


def _row(group: JudgedGroup) -> list[str]:
    of_steps, of_linear = group.predicted, group.linear
    return [
        group.short_name(),
        str(len(group.runs)),
        units.percent(of_steps.median),
        units.percent(of_steps.mean),
        units.percent(of_steps.worst),
        units.signed_percent(of_steps.bias),
        _correlation(of_steps),
        units.percent(of_linear.median),
        units.percent(of_linear.mean),
        _correlation(of_linear),
        units.DASH if group.memory is None else units.percent(group.memory.median),
    ]


def _groups(validation: Validation) -> str:
    rows = [_row(group) for group in validation.groups]
    if len(rows) > 1:
        rows.append(_row(validation.all))
    return table(_HEAD, rows, "groups")


def validation_page(validation: Validation, notes: Notes) -> str:
    figures = [steps_figure(validation), errors_figure(validation), peaks_figure(validation)]
    how = (
        f"{len(validation.all.runs)} runs are judged, {units.whole(validation.calibration_runs)} calibrated. "
        "Errors: predicted over measured, less one; without sign, but for the bias."
    )
    sections = [
        section("summary", "Summary", paragraph(how), _groups(validation)),
        section("figures", "Figures", *[figure.html() for figure in figures if figure]),
    ]
    if notes.texts:
        sections.insert(
            1, section("notes", "What is missing or damaged", items(notes.texts, "note-list"))
        )
    return html_page("Predictions of published runs", sections)
