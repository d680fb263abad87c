"""Checked access to parsed JSON: what is not as expected becomes a note, never an exception."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

_REALS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass
class Notes:
    """What the page must say is missing or damaged, in order, each once."""

    texts: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        if text not in self.texts:
            self.texts.append(text)


def as_number(value: object) -> float | None:
    """A JSON number, or one of the texts that stand for what JSON cannot write."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    return _REALS.get(value) if isinstance(value, str) else None


def as_whole(value: object) -> int | None:
    """A whole number of 64 bits."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 63:
        return value
    return None


class Fields:
    """An object of a document. An absent or null field is None, one of a wrong type also a note."""

    def __init__(self, value: object, where: str, notes: Notes) -> None:
        self._where = where
        self._notes = notes
        self._values: dict[str, object] = {}
        if isinstance(value, dict):
            self._values = value
        elif value is not None:
            notes.add(f"{where} is no object")

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def _wrong(self, name: str, expected: str) -> None:
        self._notes.add(f"{self._where}: field {name} is no {expected}")

    def names(self) -> list[str]:
        return list(self._values)

    def number(self, name: str) -> float | None:
        if name not in self:
            return None
        number = as_number(self._values[name])
        if number is None:
            self._wrong(name, "number")
        return number

    def positive(self, name: str) -> float | None:
        """A number by which one can divide."""
        number = self.number(name)
        if number is None or (math.isfinite(number) and number > 0):
            return number
        self._wrong(name, "positive number")
        return None

    def whole(self, name: str) -> int | None:
        if name not in self:
            return None
        number = as_whole(self._values[name])
        if number is None:
            self._wrong(name, "whole number")
        return number

    def text(self, name: str) -> str | None:
        value = self._values.get(name)
        if value is None or isinstance(value, str):
            return value
        self._wrong(name, "text")
        return None

    def flag(self, name: str) -> bool | None:
        value = self._values.get(name)
        if value is None or isinstance(value, bool):
            return value
        self._wrong(name, "true or false")
        return None

    def child(self, name: str) -> Fields:
        """The object; an empty one where it is absent."""
        return Fields(self._values.get(name), f"{self._where}: {name}", self._notes)

    def children(self, name: str) -> list[Fields]:
        where = f"{self._where}: {name}"
        return [
            Fields(value, f"{where}[{i}]", self._notes) for i, value in enumerate(self._list(name))
        ]

    def numbers(self, name: str) -> list[float]:
        """The numbers of a list; none at all where one of its entries is none."""
        numbers = [as_number(value) for value in self._list(name)]
        good = [number for number in numbers if number is not None]
        if len(good) == len(numbers):
            return good
        self._wrong(name, "list of numbers")
        return []

    def whole_numbers(self, name: str) -> list[int]:
        """As `numbers`, of whole ones."""
        numbers = [as_whole(value) for value in self._list(name)]
        good = [number for number in numbers if number is not None]
        if len(good) == len(numbers):
            return good
        self._wrong(name, "list of whole numbers")
        return []

    def texts(self, name: str) -> list[str]:
        """The entries of a list, as text."""
        return [str(value) for value in self._list(name)]

    def all_numbers(self) -> dict[str, float]:
        """All fields of this object that are numbers."""
        numbers = {name: self.number(name) for name in self._values}
        return {name: number for name, number in numbers.items() if number is not None}

    def all_texts(self) -> dict[str, str]:
        """All fields of this object, as text."""
        return {str(name): str(value) for name, value in self._values.items()}

    def _list(self, name: str) -> list[object]:
        value = self._values.get(name)
        if isinstance(value, list):
            return value
        if value is not None:
            self._wrong(name, "list")
        return []
