"""What evaluations by a process of its own cost the steps: a T5 on one core, alone, beside another training, and
evaluated by `trireme follow` on the other core.

Any process on the other core takes memory's bandwidth: what evaluations cost is the third over the second, which also
pays for the checkpoints that are evaluated. Times are from the end of step FIRST to the end of the last one; runs in
turn, ratios within a round. All end with the same bytes of weights.
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

MODEL = ["--model", "t5", "--t5-size", "demo"]
FIRST = 3  # the steps before it capture and warm up


WAYS = ["alone", "beside", "evaluated"]


@dataclass
class Trained:
    """A run: milliseconds a step, how many evaluations were made of it, its weights."""

    step_ms: float
    num_evaluations: int
    weights: bytes


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

    def train(self, run: Path, way: str) -> Trained:
        """`way`: alone, beside or evaluated."""
        is_evaluated = way == "evaluated"
        weights = self.folder / "weights.safetensors"
        every = str(self.options.every) if is_evaluated else "0"
        words = ["--checkpoint-every", every, "--evaluate-every", every]
        if is_evaluated:
            words.append("--evaluate-elsewhere")
        training = self.start(
            *(self.train_core, "train", "--plan", str(self.plan), "--run", str(run)),
            *("--steps", str(self.options.steps), "--save", str(weights), *words),
        )
        other = None
        if is_evaluated:
            while training.poll() is None and not (run / "run.json").exists():
                time.sleep(0.05)
            end(self.start(self.evaluation_core, "follow", "--run", str(run)))
        elif way == "beside":
            plan = ("--plan", str(self.plan), "--steps", "1000000", "--checkpoint-every", "0")
            other = self.start(self.evaluation_core, "train", *plan)
        end(training)
        if other is not None:
            other.kill()
            other.communicate()
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        ends = {line["step"]: line["time_ms"] for line in lines if "step_ms" in line}
        took = (max(ends.values()) - ends[FIRST]) / (max(ends) - FIRST)
        evaluations = run / "evaluations.jsonl"
        num_evaluations = len(evaluations.read_text().splitlines()) // 2 if is_evaluated else 0
        return Trained(took, num_evaluations, weights.read_bytes())


def end(process: "subprocess.Popen[str]") -> None:
    output, _ = process.communicate()
    if process.returncode != 0:
        sys.exit(f"{process.args!r}: {output}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=50, help="steps between evaluations")
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        sys.exit("two cores are needed")
    took: dict[str, list[float]] = {way: [] for way in WAYS}
    weights = set()
    num_evaluations = 0
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.program, Path(folder), options)
        for turn in range(options.rounds):
            for way in WAYS if turn % 2 == 0 else reversed(WAYS):
                run = bench.train(Path(folder, f"run{turn}{way}"), way)
                took[way].append(run.step_ms)
                num_evaluations += run.num_evaluations
                weights.add(run.weights)
            print(", ".join(f"{way} {took[way][-1]:.1f} ms" for way in WAYS), flush=True)
    if len(weights) != 1 or num_evaluations == 0:
        sys.exit(f"{len(weights)} different weights, {num_evaluations} evaluations")
    print(f"{num_evaluations} evaluations; medians of a step:")
    for way in WAYS:
        print(f"  {way:10} {statistics.median(took[way]):8.1f} ms")
    for other in ("alone", "beside"):
        ratios = [b / a for a, b in zip(took[other], took["evaluated"], strict=True)]
        low, high = min(ratios) - 1, max(ratios) - 1
        print(
            f"evaluated over {other}: {statistics.median(ratios) - 1:+.1%} ({low:+.1%} to {high:+.1%})"
        )
    print("All ended with the same bytes of weights")


if __name__ == "__main__":
    main()
