"""Colours and form of all figures: light, and distinct for colour-blind readers and in print."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from trireme.report.markup import escape
from trireme.report.run import Segment

INK = "#1f2933"
FAINT = "#e4e7eb"
PREDICTED = "#7b8794"
MEASURED = "#2a6fb0"
HELD_OUT = "#d1651f"
SERIES = (MEASURED, "#3d9a6b", "#8a5fb5", "#c9a227", "#c0504d", "#4aa3c7", "#7f6a55", "#9aa5b1")

TEMPLATE = go.layout.Template(
    layout={
        "font": {"family": "system-ui, sans-serif", "size": 13, "color": INK},
        "paper_bgcolor": "white",
        "plot_bgcolor": "white",
        "colorway": list(SERIES),
        "margin": {"l": 70, "r": 20, "t": 30, "b": 50},
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {
            "gridcolor": FAINT,
            "linecolor": PREDICTED,
            "ticks": "outside",
            "zeroline": False,
        },
        "yaxis": {
            "gridcolor": FAINT,
            "linecolor": PREDICTED,
            "ticks": "outside",
            "zeroline": False,
            "automargin": True,
            "title": {"standoff": 12},
        },
        "hoverlabel": {"bgcolor": "white", "font": {"color": INK}},
    }
)


def new_figure(x_title: str, y_title: str, height: int = 340) -> go.Figure:
    figure = go.Figure()
    figure.update_layout(template=TEMPLATE, height=height, hovermode="x unified")
    figure.update_xaxes(title=x_title)
    figure.update_yaxes(title=y_title)
    return figure


def plan_text(segment: Segment) -> str:
    """A segment's plan in a few words."""
    parts = []
    if segment.stages is not None:
        parts.append(f"{segment.stages} stage" + ("s" if segment.stages != 1 else ""))
    if segment.replicas is not None:
        parts.append(f"{segment.replicas} replica" + ("s" if segment.replicas != 1 else ""))
    text = " × ".join(parts)
    return ", ".join(part for part in (text, segment.schedule) if part) or "unknown plan"


def mark_segments(figure: go.Figure, segments: Sequence[Segment]) -> None:
    """A line where a segment begins, and how many ranks trained it above. None where there is
    only one segment.
    """
    if len(segments) < 2:
        return
    figure.update_layout(margin={"t": 78}, legend={"y": 1.16})
    for segment in segments:
        if segment.first_step is None:
            continue
        ranks = "?" if segment.ranks is None else segment.ranks
        shape = f" ({segment.stages} × {segment.replicas})" if segment.has_mesh() else ""
        figure.add_vline(
            x=segment.first_step - 0.5,
            line={"color": PREDICTED, "width": 1, "dash": "dot"},
            annotation={
                "text": escape(f"{ranks} ranks{shape}"),
                "yshift": 13 * (segment.index % 2),  # neighbours may be close to each other
                "font": {"size": 11, "color": PREDICTED},
                "yref": "paper",
                "y": 1,
                "yanchor": "bottom",
                "xanchor": "left",
                "showarrow": False,
            },
        )
