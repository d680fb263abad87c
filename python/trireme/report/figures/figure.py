"""A figure of the page: plotly's, with an id, a title and a line that says how to read it."""

from __future__ import annotations

from dataclasses import dataclass

import plotly.graph_objects as go

from trireme.report.markup import escape


@dataclass(frozen=True)
class Figure:
    """`summary` says in words what the figure shows, for those who do not see it."""

    name: str
    title: str
    caption: str
    plot: go.Figure
    summary: str = ""

    def html(self) -> str:
        """A place, and what page.js draws there."""
        name = escape(self.name)
        label = escape(f"{self.title}. {self.summary or self.caption}")
        # Inside of a script element nothing is escaped, and only `</` could end it.
        drawing = self.plot.to_json().replace("<", "\\u003c")
        return (
            f'<figure id="figure-{name}"><h3>{escape(self.title)}</h3>\n'
            f"<figcaption>{escape(self.caption)}</figcaption>\n"
            f'<div id="{name}" class="plot" role="img" aria-label="{label}"></div>\n'
            f'<script type="application/json" data-for="{name}">{drawing}</script></figure>\n'
        )
