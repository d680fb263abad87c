"""Memory of each rank: predicted by kind, and the measured peak."""

from __future__ import annotations

from trireme.report.figures.figure import Figure
from trireme.report.figures.theme import INK, PREDICTED, SERIES, new_figure
from trireme.report.markup import escape
from trireme.report.run import Segment
from trireme.report.units import error, mebibytes, memory, signed_percent

# Bottom to top. A kind has the same colour in every figure.
_KINDS = (
    "parameters",
    "gradients",
    "optimizer",
    "activations",
    "transient",
    "messages",
    "batch",
    "fixed",
)


def _kinds_of(segment: Segment) -> list[str]:
    """Those that a rank has; ones that this file does not know last."""
    found = {kind for rank in segment.predicted_peak_bytes for kind in rank}
    return [kind for kind in _KINDS if kind in found] + sorted(found - set(_KINDS))


def _color(kind: str) -> str:
    return SERIES[_KINDS.index(kind)] if kind in _KINDS else PREDICTED


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
    for kind in _kinds_of(segment):
        figure.add_bar(
            x=[f"rank {rank}" for rank in range(len(predicted))],
            y=[mebibytes(rank.get(kind, 0)) for rank in predicted],
            name=escape(kind),
            marker={"color": _color(kind), "line": {"color": "white", "width": 1}},
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
