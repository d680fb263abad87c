"""What evaluations by a process of its own cost the steps: a T5 trains on one core, and `trireme follow` evaluates its
checkpoints on the other.

A machine drifts by more than evaluations cost. So everything is taken from one run, in which an evaluation ends long
before the next checkpoint: in each period, from one checkpoint to the next, the steps after its evaluation are those
of a training alone. The losses are compared, to the bit, with those of a run without evaluations.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MODEL = ["--model", "t5", "--t5-size", "demo"]
ALONE_STEPS = 10


@dataclass
class Period:
    """Milliseconds a step: of all steps, of those during the evaluation, and of those after it."""

    all_ms: float
    during_ms: float
    after_ms: float


class Bench:
    def __init__(self, program: str, folder: Path, options: argparse.Namespace) -> None:
        self.program, self.folder, self.options = program, folder, options
        self.train_core, self.evaluation_core = sorted(os.sched_getaffinity(0))[:2]
        self.plan = folder / "plan.json"
        self.call(0, "record", "--out", str(folder))
        graph = str(folder / "train.graph.json")
        batch = ("--batch", "16", "--microbatch", "4", "--stages", "1")
        self.call(0, "partition", "--graph", graph, *batch, "--out", str(self.plan))

    def start(self, core: int, *words: str) -> "subprocess.Popen[str]":
        command = [self.program, *MODEL, "--t5-cache", str(self.folder / "cache"), *words]
        return subprocess.Popen(
            ["taskset", "-c", str(core), *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def call(self, core: int, *words: str) -> None:
        end(self.start(core, *words))

    def train(self, name: str, steps: int, *words: str) -> list[dict[str, Any]]:
        """The lines of the run's metrics; evaluated where `words` say that somebody else evaluates."""
        run = self.folder / name
        training = self.start(
            *(self.train_core, "train", "--plan", str(self.plan), "--run", str(run)),
            *("--steps", str(steps), *words),
        )
        if "--evaluate-elsewhere" in words:
            while training.poll() is None and not (run / "run.json").exists():
                time.sleep(0.05)
            end(self.start(self.evaluation_core, "follow", "--run", str(run)))
        end(training)
        return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def end(process: "subprocess.Popen[str]") -> None:
    output, _ = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{process.args!r}: {output}")


def losses(lines: list[dict[str, Any]]) -> list[float]:
    return [line["loss"] for line in lines if "step_ms" in line]


def period(ends: dict[int, int], evaluated: int, first: int, last: int) -> Period:
    """Steps [first, last): their checkpoint was evaluated at the time `evaluated`; `ends` are the steps' own."""

    def mean(steps: list[int]) -> float:
        if not steps:
            sys.exit(
                f"steps {first} to {last}: all of them during or after the evaluation; change --every"
            )
        return statistics.mean(ends[step] - ends[step - 1] for step in steps)

    steps = list(range(first, last))
    during = [step for step in steps if ends[step] <= evaluated]
    after = [step for step in steps if ends[step - 1] > evaluated]
    return Period(mean(steps), mean(during), mean(after))


def periods(lines: list[dict[str, Any]], every: int) -> list[Period]:
    ends = {line["step"]: line["time_ms"] for line in lines if "step_ms" in line}
    evaluated = {line["step"]: line["time_ms"] for line in lines if "evaluation" in line}
    firsts = range(every, max(ends) + 2 - every, every)
    return [period(ends, evaluated[first], first, first + every) for first in firsts]


def show(name: str, ratios: list[float]) -> None:
    low, middle, high = statistics.quantiles(ratios, n=4)
    print(f"  {name:34} {middle - 1:+.1%}, half of them {low - 1:+.1%} to {high - 1:+.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--periods", type=int, default=8)
    parser.add_argument("--every", type=int, default=30, help="steps between evaluations")
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("two cores are needed")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.program, Path(folder), options)
        alone = bench.train("alone", ALONE_STEPS, "--checkpoint-every", "0")
        every = str(options.every)
        words = ("--checkpoint-every", every, "--evaluate-every", every, "--evaluate-elsewhere")
        lines = bench.train("evaluated", options.every * (options.periods + 1), *words)
    if losses(alone) != losses(lines)[:ALONE_STEPS]:
        sys.exit("losses differ from those of a run without evaluations")
    found = periods(lines, options.every)
    after_ms = statistics.median(p.after_ms for p in found)
    print(f"{len(found)} evaluations, a step takes {after_ms:.1f} ms; the median over them costs")
    show("a step during the evaluation", [p.during_ms / p.after_ms for p in found])
    show("a step of the run, with checkpoints", [p.all_ms / p.after_ms for p in found])
    print(f"The first {ALONE_STEPS} losses are those of a run without evaluations, to the bit")


if __name__ == "__main__":
    main()
