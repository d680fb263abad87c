"""Memory of each rank: predicted by kind, and the measured peak."""

from __future__ import annotations

from trireme.report.figures.figure import Figure
from trireme.report.figures.theme import INK, PREDICTED, SERIES, new_figure
from trireme.report.markup import escape
from trireme.report.run import Segment
from trireme.report.units import error, mebibytes, memory, signed_percent


def _errors(segment: Segment) -> list[str]:
    predicted = segment.predicted_peaks()
    return [
        f"measured {memory(peak)}, prediction "
        + (signed_percent(error(predicted[rank], peak)) if rank < len(predicted) else "unknown")
        for rank, peak in enumerate(segment.peak_bytes)
    ]


def memory_figure(segment: Segment) -> Figure | None:
    predicted = segment.predicted_peak_bytes
    if not predicted and not segment.peak_bytes:
        return None
    figure = new_figure("", "MiB", 320)
    kinds = sorted({kind for rank in predicted for kind in rank})
    for number, kind in enumerate(kinds):
        figure.add_bar(
            x=[f"rank {rank}" for rank in range(len(predicted))],
            y=[mebibytes(rank.get(kind, 0)) for rank in predicted],
            name=escape(kind),
            marker={"color": SERIES[number % len(SERIES)], "line": {"color": "white", "width": 1}},
            hovertemplate="%{y:.1f} MiB",
        )
    peaks = (
        ("measured peak", segment.peak_bytes, _errors(segment), INK, True),
        (
            "process, with code",
            segment.resident_peak_bytes,
            [memory(peak) for peak in segment.resident_peak_bytes],
            PREDICTED,
            "legendonly",
        ),
    )
    for name, values, texts, color, visible in peaks:
        if not values:
            continue
        figure.add_scatter(
            x=[f"rank {rank}" for rank in range(len(values))],
            y=[mebibytes(value) for value in values],
            name=name,
            mode="markers",
            visible=visible,
            marker={
                "color": color,
                "size": 12,
                "symbol": "diamond",
                "line": {"color": "white", "width": 1},
            },
            hovertext=texts,
            hovertemplate="%{hovertext}",
        )
    figure.update_layout(barmode="stack", bargap=0.5, legend={"traceorder": "normal"})
    figure.update_yaxes(rangemode="tozero")
    return Figure(
        f"memory-{segment.index}",
        f"Memory per rank, {segment.name()}",
        "Bars: predicted, at the peak of the step. Diamonds: measured peak of live tensors.",
        figure,
    )
