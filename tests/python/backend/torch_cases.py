"""torch's own tests of a backend (torch.testing._internal.distributed.distributed_test), ranks forked.

    python torch_cases.py --ranks 3 --name gloo --json results.json [--native] [--only all_reduce]

Runs them on Trireme under the name ``trireme``, or under a name of torch's by which cases are gated
(``gloo``); ``--native`` leaves that name to torch's own backend. Prints a line for each case.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import unittest
from pathlib import Path
from typing import Any


class Outcomes(unittest.TestResult):
    """What became of each case: ``passed``, ``failed`` or ``skipped``, and why."""

    def __init__(self) -> None:
        super().__init__()
        self.by_case: dict[str, dict[str, Any]] = {}
        self._start = 0.0

    def startTest(self, test: unittest.TestCase) -> None:
        self._start = time.monotonic()
        super().startTest(test)

    def _note(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        seconds = round(time.monotonic() - self._start, 2)
        name = test._testMethodName
        self.by_case[name] = {"outcome": outcome, "why": why, "seconds": seconds}
        print(f"{outcome:8}{seconds:7.2f} s  {name}  {why.strip()[-400:]}", flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:
        self._note(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: Any) -> None:
        self._note(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test: unittest.TestCase, err: Any) -> None:
        self._note(test, "failed", self._exc_info_to_string(err, test))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:
        self._note(test, "skipped", reason)


def run_cases(name: str, is_native: bool, only: str) -> dict[str, dict[str, Any]]:
    """The outcome of each case whose name has ``only`` in it; ranks as WORLD_SIZE says."""
    import torch
    from torch.testing._internal.distributed.distributed_test import (
        DistributedTest,
        TestDistBackend,
    )

    if not is_native:
        import trireme.torch

        trireme.torch.register(name)
    torch.set_num_threads(1)

    class Case(TestDistBackend, DistributedTest._DistTestBase):  # type: ignore[misc, name-defined]
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    outcomes = Outcomes()
    for case in unittest.TestLoader().getTestCaseNames(Case):
        if only in case:
            Case(case).run(outcomes)
    return outcomes.by_case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--name", default="trireme")
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            BACKEND=arguments.name,
            WORLD_SIZE=str(arguments.ranks),
            TEMP_DIR=folder,
            INIT_METHOD=f"file://{folder}/init",
            OMP_NUM_THREADS="1",
        )
        by_case = run_cases(arguments.name, arguments.native, arguments.only)
    counts = {"passed": 0, "skipped": 0, "failed": 0}
    for case in by_case.values():
        counts[case["outcome"]] += 1
    print(f"{arguments.name} at {arguments.ranks} ranks: {counts}")
    if arguments.json:
        arguments.json.write_text(json.dumps(by_case, indent=1))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
