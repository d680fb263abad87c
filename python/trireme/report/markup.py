"""Small pieces of HTML. Every text that comes from a file goes through `escape`."""

from __future__ import annotations

import html
from collections.abc import Sequence


def escape(text: str) -> str:
    """Safe between tags, in quoted attributes, and in the texts of figures."""
    return html.escape(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]], name: str) -> str:
    """A table with the id `name`; cells are texts, escaped here. Numbers stand to the right."""
    cells = "".join(f"<th>{escape(text)}</th>" for text in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in row) + "</tr>\n" for row in rows
    )
    return (
        f'<div class="table"><table id="{escape(name)}"><thead><tr>{cells}</tr></thead>\n'
        f"<tbody>{body}</tbody></table></div>\n"
    )


def facts(pairs: Sequence[tuple[str, str]], name: str) -> str:
    """Names and values, as a list."""
    body = "".join(
        f"<div><dt>{escape(key)}</dt><dd>{escape(value)}</dd></div>\n" for key, value in pairs
    )
    return f'<dl id="{escape(name)}">{body}</dl>\n'


def section(name: str, title: str, *parts: str) -> str:
    return f'<section id="{escape(name)}"><h2>{escape(title)}</h2>\n{"".join(parts)}</section>\n'


def paragraph(text: str, kind: str = "") -> str:
    return f'<p class="{kind}">{escape(text)}</p>\n' if kind else f"<p>{escape(text)}</p>\n"


def items(texts: Sequence[str], name: str) -> str:
    body = "".join(f"<li>{escape(text)}</li>\n" for text in texts)
    return f'<ul id="{escape(name)}">{body}</ul>\n'
