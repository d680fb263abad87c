"""torch's own tests of a backend, torch.testing._internal.distributed.distributed_test.

    python torch_cases.py --ranks 3 --name gloo --json results.json [--native] [CASE..]

Runs them with forked ranks on Trireme under the name ``trireme``, or under a name of torch's by
which cases are gated (``gloo``); ``--native`` leaves that name to torch's own backend; ``--gate
mpi`` tries the cases that are for that backend alone. Prints a line for each case.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import traceback
import unittest
from pathlib import Path
from types import TracebackType
from typing import Any

# What unittest says of an exception.
ErrorOf = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


class Outcomes(unittest.TestResult):
    """What became of each case: ``passed``, ``failed`` or ``skipped``, and why."""

    def __init__(self) -> None:
        super().__init__()
        self.by_case: dict[str, dict[str, Any]] = {}
        self._start = 0.0

    def startTest(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._start = time.monotonic()
        super().startTest(test)

    def _note(self, test: unittest.TestCase, outcome: str, why: str = "") -> None:
        seconds = round(time.monotonic() - self._start, 2)
        name = test._testMethodName
        self.by_case[name] = {"outcome": outcome, "why": why, "seconds": seconds}
        print(f"{outcome:8}{seconds:7.2f} s  {name}  {why.strip()[-400:]}", flush=True)

    def addSuccess(self, test: unittest.TestCase) -> None:  # noqa: N802
        self._note(test, "passed")

    def addFailure(self, test: unittest.TestCase, err: ErrorOf) -> None:  # noqa: N802
        self._note(test, "failed", "".join(traceback.format_exception(err[1])))

    def addError(self, test: unittest.TestCase, err: ErrorOf) -> None:  # noqa: N802
        self._note(test, "failed", "".join(traceback.format_exception(err[1])))

    def addSkip(self, test: unittest.TestCase, reason: str) -> None:  # noqa: N802
        self._note(test, "skipped", reason)


def run_cases(name: str, words: list[str]) -> dict[str, dict[str, Any]]:
    """The outcome of each case that is one of ``words`` or, where a word is no whole name of a
    case, has it in its name; of all without words. Ranks as WORLD_SIZE says."""
    import torch
    from torch.testing._internal.common_distributed import DistTestCases

    for feature in ("ddp", "subgroup"):  # what a backend has to have for cases to be tried
        DistTestCases.backend_feature[feature].add(name)
    from torch.testing._internal.distributed import distributed_test
    from torch.testing._internal.distributed.distributed_test import (
        DistributedTest,
        TestDistBackend,
    )

    distributed_test.BACKEND = name  # what the decorators of cases have read decides no more
    torch.set_num_threads(1)

    class Case(TestDistBackend, DistributedTest._DistTestBase):
        def setUp(self) -> None:
            super().setUp()
            self._start_processes(torch.multiprocessing.get_context("fork").Process)

    outcomes = Outcomes()
    for case in unittest.TestLoader().getTestCaseNames(Case):
        parts = [word for word in words if not word.startswith("test_")]
        if not words or case in words or any(part in case for part in parts):
            Case(case).run(outcomes)
    return outcomes.by_case


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--name", default="trireme")
    parser.add_argument("--native", action="store_true")
    parser.add_argument("--gate", help="the backend by whose name cases are chosen; as --name")
    parser.add_argument("words", nargs="*", metavar="CASE", help="cases with this in their name")
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(
            BACKEND=arguments.gate or arguments.name,
            WORLD_SIZE=str(arguments.ranks),
            TEMP_DIR=folder,
            INIT_METHOD=f"file://{folder}/init",
            OMP_NUM_THREADS="1",
        )
        if not arguments.native:
            import trireme.torch

            trireme.torch.register(arguments.name)
        by_case = run_cases(arguments.name, arguments.words)
    counts = {"passed": 0, "skipped": 0, "failed": 0}
    for case in by_case.values():
        counts[case["outcome"]] += 1
    print(f"{arguments.name} at {arguments.ranks} ranks: {counts}")
    if arguments.json:
        arguments.json.write_text(json.dumps(by_case, indent=1))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
