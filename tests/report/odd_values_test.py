"""Whatever the files of a run hold, there is a page about it, or one clear refusal."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import os
import random
import unittest
from collections.abc import Iterator
from typing import Any
from unittest import mock

from run_case import RunTest, read_document
from sample_run import run_document, write_document
from trireme.report.fields import Notes
from trireme.report.metrics import read_metrics
from trireme.report.page import page
from trireme.report.run import NotARun

VALUES: tuple[object, ...] = (
    None,
    -1,
    0.5,
    math.inf,
    math.nan,
    "inf",
    "<b>",
    "\ud800",
    [],
    ["inf"],
    [math.nan],
    {},
    {"x": 1},
    True,
    1 << 62,
    10**400,
)


def places(value: object, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """All places in a document; entries of a list are alike, so only its first."""
    yield path
    if isinstance(value, dict):
        for key, one in value.items():
            yield from places(one, (*path, key))
    if isinstance(value, list) and value:
        yield from places(value[0], (*path, 0))


def with_value(document: object, path: tuple[str | int, ...], value: object) -> object:
    if not path:
        return value
    result = copy.copy(document)
    assert isinstance(result, dict | list)
    at: Any = path[0]
    result[at] = with_value(result[at], path[1:], value)
    return result


def chosen(
    places: Iterator[tuple[str | int, ...]],
) -> Iterator[tuple[tuple[str | int, ...], object]]:
    step = 1 if os.environ.get("TRIREME_ALL_ODD_VALUES") else 3
    for at, place in enumerate(places):
        for value in VALUES[at % step :: step]:
            yield place, value


class OddValuesTest(RunTest):
    """Each odd value at each place of a small run.

    Of documents every third, and another third at the next place, unless TRIREME_ALL_ODD_VALUES
    is set.
    """

    def setUp(self) -> None:
        super().setUp()
        body = run_document()
        body["options"] = {"layers": "4"}
        body["segments"] = body["segments"][:1]
        write_document(self.folder / "run.json", "run", body)
        timeline = read_document(self.folder / "timeline-1.json")
        forwards = [one for one in timeline["traceEvents"] if one.get("cat") == "F"]
        timeline["traceEvents"] = forwards[:2]
        (self.folder / "timeline-1.json").write_text(json.dumps(timeline))
        self.metrics = self.folder / "metrics.jsonl"
        lines = [json.loads(line) for line in self.metrics.read_text().splitlines()]
        lines[0]["by_name"] = {"main": 1.5, "balance": 0.5}
        lines[25]["evaluation"]["by_name"] = {"main": 1.5}
        self.lines = [lines[0], lines[25]]
        self.metrics.write_text("".join(json.dumps(line) + "\n" for line in self.lines))
        self.shown: set[str] = set()

    def show(self) -> None:
        """Makes the page, where there is something to show that was not shown before."""
        run = self.read()
        shown = repr(dataclasses.replace(run, notes=Notes()))
        if shown not in self.shown:
            self.shown.add(shown)
            with mock.patch("trireme.report.html_page.get_plotlyjs", return_value=""):
                page(run)

    def test_documents(self) -> None:
        for name in ("run.json", "plan-1.json", "timeline-1.json"):
            sound = read_document(self.folder / name)
            del sound["sha256"]
            for place, value in chosen(places(sound)):
                (self.folder / name).write_text(json.dumps(with_value(sound, place, value)))
                with self.subTest(name=name, place=place, value=value):
                    try:
                        self.show()
                    except NotARun:
                        self.assertEqual(name, "run.json")
                        self.assertIn(place, [(), ("format",), ("version",)])
            (self.folder / name).write_text(json.dumps(sound))

    def test_metrics(self) -> None:
        for at, line in enumerate(self.lines):
            for place, value in itertools.product(places(line), VALUES):
                lines = [*self.lines[:at], with_value(line, place, value), *self.lines[at + 1 :]]
                self.metrics.write_text("".join(json.dumps(one) + "\n" for one in lines))
                with self.subTest(at=at, place=place, value=value):
                    self.show()

    def test_bytes_of_metrics(self) -> None:
        """Bytes changed, left out and put in at random: every step that is found has a number, the rest is a note."""
        text = self.metrics.read_bytes()
        words = (b"1e999", b"null", b"[", b'{"a":', b"NaN", b"9" * 40, b"\xff", b"\n", b"[" * 9000)
        seed = random.randrange(1 << 32)
        chance = random.Random(seed)
        for _ in range(100):
            changed = bytearray(text)
            for _ in range(chance.randrange(1, 12)):
                at = chance.randrange(len(changed) + 1)
                if chance.random() < 0.5:
                    changed[at : at + chance.randrange(30)] = chance.choice(words)
                else:
                    changed[at : at + 1] = bytes([chance.randrange(256)])
            self.metrics.write_bytes(bytes(changed))
            with self.subTest(seed=seed, text=bytes(changed)):
                notes = Notes()
                metrics = read_metrics(self.metrics, notes)
                self.assertTrue(all(isinstance(one.step, int) for one in metrics.steps()))
                metrics.parts()
                metrics.repeated()


if __name__ == "__main__":
    unittest.main()
