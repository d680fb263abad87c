"""Numbers for people. A dash stands for what is not known."""

from __future__ import annotations

import math

DASH = "–"
NBSP = "\u00a0"
_MIB = 1 << 20


def _known(number: float | None) -> bool:
    return number is not None and math.isfinite(number)


def whole(number: float | None) -> str:
    return f"{number:.0f}" if number is not None and _known(number) else DASH


def loss(number: float | None) -> str:
    return f"{number:.4f}" if number is not None and _known(number) else DASH


def milliseconds(number: float | None) -> str:
    if number is None or not _known(number):
        return DASH
    return f"{number:.0f}{NBSP}ms" if number >= 100 else f"{number:.3g}{NBSP}ms"


def mebibytes(number: float) -> float:
    return number / _MIB


def memory(number: float | None) -> str:
    if number is None or not _known(number):
        return DASH
    size = mebibytes(number)
    return f"{size:.0f}{NBSP}MiB" if size >= 10 else f"{size:.2f}{NBSP}MiB"


def percent(fraction: float | None, digits: int = 1) -> str:
    return f"{100 * fraction:.{digits}f}{NBSP}%" if fraction is not None and _known(fraction) else DASH


def error(predicted: float | None, measured: float | None) -> float | None:
    """Of the prediction, as a fraction of what was measured."""
    if predicted is None or measured is None or not measured > 0:
        return None
    return predicted / measured - 1


def signed_percent(fraction: float | None) -> str:
    return f"{100 * fraction:+.1f}{NBSP}%" if fraction is not None and _known(fraction) else DASH
