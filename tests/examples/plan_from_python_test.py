"""A program that knows docs/formats.md alone gets a plan."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples/03_plan_from_python/plan.py"


class PlanFromPythonTest(unittest.TestCase):
    def test_its_files_are_read_and_planned(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            command = [sys.executable, str(EXAMPLE), os.environ["TRIREME_PROGRAM"], name]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            plan = json.loads((folder / "plan.json").read_text(encoding="utf-8"))
            profile = json.loads((folder / "profile.json").read_text(encoding="utf-8"))
        self.assertEqual(plan["graph_sha256"], profile["graph_sha256"])
        # The first two layers on one machine, the others and the loss on the other.
        self.assertEqual([stage["begin"] for stage in plan["stages"]], [0, 1, 2, 3])


if __name__ == "__main__":
    unittest.main()
