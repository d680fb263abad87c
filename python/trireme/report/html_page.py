"""The frame of every page: style, scripts, and the policy that nothing is loaded."""

from __future__ import annotations

import base64
import gzip
from collections.abc import Sequence
from pathlib import Path

from plotly.offline import get_plotlyjs

from trireme.report.markup import escape

# The page may load nothing: neither by mistake nor by what the files that it shows hold.
_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:"
)


def _plotly() -> str:
    """Plotly's script, packed: a third of its 5 MB. The same bytes each time."""
    return base64.b64encode(gzip.compress(get_plotlyjs().encode(), 9, mtime=0)).decode()


def html_page(title: str, sections: Sequence[str]) -> str:
    """The whole page: no part of it is elsewhere."""
    style = (Path(__file__).parent / "page.css").read_text(encoding="utf-8")
    script = (Path(__file__).parent / "page.js").read_text(encoding="utf-8")
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{style}</style>\n"
        f'<meta name="color-scheme" content="light dark">\n'
        f'<script type="text/plain" id="plotly">{_plotly()}</script></head>\n'
        f"<body><main><header><h1>{escape(title)}</h1></header>\n"
        f"{''.join(sections)}</main>\n<script>{script}</script></body></html>\n"
    )
