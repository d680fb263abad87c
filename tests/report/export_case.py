"""What tests of a run's metrics in other tools have in common."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from run_case import RunTest
from sample_run import Document, run_document, write_document
from trireme.report.fields import Notes


def text_of(lines: Iterable[Document]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def once(lines: list[Document]) -> dict[str, dict[int, Document]]:
    """What is left of the sample: the later of what stands there twice."""
    found: dict[str, dict[int, Document]] = {"train": {}, "evaluation": {}}
    for line in lines:
        found["evaluation" if "evaluation" in line else "train"][line["step"]] = line
    return found


class ExportCase(RunTest):
    def setUp(self) -> None:
        super().setUp()
        self.out = self.folder.parent / "out"
        self.metrics = self.folder / "metrics.jsonl"
        self.texts = Notes()

    def write_lines(self, lines: list[Document], mode: str = "w") -> None:
        with self.metrics.open(mode, encoding="utf-8") as file:
            file.write(text_of(lines))

    def change_run(self, **fields: object) -> None:
        write_document(self.folder / "run.json", "run", run_document() | fields)

    def command(self, *words: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "trireme.report", str(self.folder), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=False)
