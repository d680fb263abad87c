"""The page about predictions of published runs, from what the program prints of a few that were typed in."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path
from typing import Any

from trireme.report.documents import NoDocument
from trireme.report.fields import Notes
from trireme.report.figures.validation import errors_figure, peaks_figure, steps_figure
from trireme.report.validation import Validation, read_validation
from trireme.report.validation_page import validation_page

PROGRAM = os.environ["TRIREME_PROGRAM"]
RUNS = Path(__file__).parents[2] / "benchmarks" / "simulator" / "runs.csv"
JUDGED = ("2205.05198", "chronicles")


def judged() -> dict[str, Any]:
    command = [PROGRAM, "validate", str(RUNS), "--calibrate", "2104.04473", "--judge", *JUDGED]
    done = subprocess.run(
        [*command, "--json"], capture_output=True, text=True, timeout=60, check=True
    )
    body: dict[str, Any] = json.loads(done.stdout)
    return body


class ValidationTest(unittest.TestCase):
    body: dict[str, Any]

    @classmethod
    def setUpClass(cls) -> None:
        cls.body = judged()

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / "judged.json"
        self.notes = Notes()

    def read(self, body: object) -> Validation:
        self.file.write_text(json.dumps(body))
        return read_validation(self.file, self.notes)

    def test_every_run_is_a_point_of_its_group(self) -> None:
        figure = steps_figure(self.read(self.body))
        assert figure is not None
        _, *groups = figure.plot.data
        self.assertEqual([len(group.x) for group in groups], [8, 100])
        expected = [(run["measured_s"], run["predicted_s"]) for run in self.body["runs"]]
        found = [pair for group in groups for pair in zip(group.x, group.y, strict=True)]
        self.assertEqual(sorted(found), sorted(expected))

    def test_errors_are_those_of_the_program(self) -> None:
        figure = errors_figure(self.read(self.body))
        assert figure is not None
        of_steps = figure.plot.data[0]
        name = of_steps.y[-1]
        offs = sorted(abs(x) for x, y in zip(of_steps.x, of_steps.y, strict=True) if y == name)
        middle = (offs[49] + offs[50]) / 2
        self.assertAlmostEqual(middle, 100 * self.body["groups"][-1]["predicted"]["median"])

    def test_memory_is_shown_where_a_source_says_it(self) -> None:
        figure = peaks_figure(self.read(self.body))
        assert figure is not None
        known = sum(run["measured_bytes"] is not None for run in self.body["runs"])
        self.assertGreater(known, 0)
        self.assertEqual(sum(len(group.x) for group in figure.plot.data[1:]), known)

    def test_a_run_without_a_time_is_left_out_and_said(self) -> None:
        body = json.loads(json.dumps(self.body))
        body["runs"][3]["measured_s"] = None
        validation = self.read(body)
        self.assertEqual(len(validation.all.runs), 107)
        self.assertIn(
            "judged.json: runs[3] has no times, and is left out",
            validation_page(validation, self.notes),
        )

    def test_names_of_a_file_are_only_text(self) -> None:
        body = {"groups": [{"name": "<b>"}], "runs": [], "all": {}}
        self.assertIn("&lt;b&gt;", validation_page(self.read(body), self.notes))

    def test_other_files_are_refused(self) -> None:
        for body in ({"steps": 3}, [1], 7):
            with self.subTest(body=body), self.assertRaisesRegex(NoDocument, "validate --json"):
                self.read(body)

    def test_the_verb_makes_the_page_beside_the_file(self) -> None:
        self.file.write_text(json.dumps(self.body))
        command = [PROGRAM, "report", str(self.file)]
        subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
        text = self.file.with_suffix(".html").read_text(encoding="utf-8")
        for name in ("steps", "errors", "peaks"):
            self.assertIn(f'id="figure-{name}"', text)


if __name__ == "__main__":
    unittest.main()
