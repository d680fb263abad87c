"""What tests of a run's folder have in common."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from sample_run import write_run
from trireme.report.run import Run, read_run


def read_document(path: Path) -> dict[str, Any]:
    document = json.loads(path.read_text())
    assert isinstance(document, dict)
    return document


class RunTest(unittest.TestCase):
    """Each test gets the folder of a run of its own."""

    def setUp(self) -> None:
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name) / "run"
        write_run(self.folder)

    def read(self) -> Run:
        return read_run(self.folder)

    def notes(self) -> str:
        """What is missing, as the page says it."""
        return "\n".join(self.read().notes.texts)

    def append(self, text: str) -> None:
        with (self.folder / "metrics.jsonl").open("a") as file:
            file.write(text)
