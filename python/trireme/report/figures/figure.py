"""A figure of the page: plotly's, with an id, a title and a line that says how to read it."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go

from trireme.report.markup import escape

_CONFIG = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtons": [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
}


@dataclass(frozen=True)
class Figure:
    name: str
    title: str
    caption: str
    plot: go.Figure

    def html(self) -> str:
        """Needs plotly's script earlier on the page."""
        drawing = self.plot.to_html(
            full_html=False, include_plotlyjs=False, div_id=self.name, config=_CONFIG
        )
        return (
            f'<figure id="figure-{escape(self.name)}"><h3>{escape(self.title)}</h3>\n'
            f"<figcaption>{escape(self.caption)}</figcaption>\n{drawing}</figure>\n"
        )
