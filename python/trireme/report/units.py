"""Numbers for people. A dash stands for what is not known."""

from __future__ import annotations

import math

DASH = "–"
NBSP = "\u00a0"
_MIB = 1 << 20


def _text(number: float | None, form: str, unit: str = "") -> str:
    if number is None or not math.isfinite(number):
        return DASH
    return format(number, form) + (NBSP + unit if unit else "")


def whole(number: float | None) -> str:
    return _text(number, ".0f")


def loss(number: float | None) -> str:
    return _text(number, ".4f")


def milliseconds(number: float | None) -> str:
    return _text(number, ".0f" if number is not None and number >= 100 else ".3g", "ms")


def mebibytes(number: float) -> float:
    return number / _MIB


def memory(number: float | None) -> str:
    if number is None:
        return DASH
    size = mebibytes(number)
    return _text(size, ".0f" if size >= 10 else ".2f", "MiB")


def percent(fraction: float | None) -> str:
    return _text(None if fraction is None else 100 * fraction, ".1f", "%")


def signed_percent(fraction: float | None) -> str:
    return _text(None if fraction is None else 100 * fraction, "+.1f", "%")


def error(predicted: float | None, measured: float | None) -> float | None:
    """Of the prediction, as a fraction of what was measured."""
    if predicted is None or measured is None or not measured > 0:
        return None
    return predicted / measured - 1
