"""What evaluations by a process of its own cost the steps: a T5 on one core, alone and evaluated on another.

The second run writes the checkpoints that are evaluated, which the first does not. Times are from the end of step FIRST
to the end of the last one; runs in turn, ratios of neighbours. All end with the same bytes of weights.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MODEL = ["--model", "t5", "--t5-size", "demo"]
FIRST = 3  # the steps before it capture and warm up


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

    def train(self, run: Path, is_followed: bool) -> tuple[float, int, bytes]:
        """Milliseconds a step, the number of evaluations, and the weights."""
        weights = self.folder / "weights.safetensors"
        every = str(self.options.every) if is_followed else "0"
        words = ["--checkpoint-every", every, "--evaluate-every", every]
        if is_followed:
            words.append("--evaluate-elsewhere")
        training = self.start(
            *(self.train_core, "train", "--plan", str(self.plan), "--run", str(run)),
            *("--steps", str(self.options.steps), "--save", str(weights), *words),
        )
        if is_followed:
            while training.poll() is None and not (run / "run.json").exists():
                time.sleep(0.05)
            end(self.start(self.evaluation_core, "follow", "--run", str(run)))
        end(training)
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        ends = {line["step"]: line["time_ms"] for line in lines if "step_ms" in line}
        took = (max(ends.values()) - ends[FIRST]) / (max(ends) - FIRST)
        evaluations = run / "evaluations.jsonl"
        num_evaluations = len(evaluations.read_text().splitlines()) if evaluations.exists() else 0
        return took, num_evaluations, weights.read_bytes()


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
    took: dict[bool, list[float]] = {False: [], True: []}
    weights = set()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.program, Path(folder), options)
        for turn in range(options.rounds):
            for is_followed in (False, True) if turn % 2 == 0 else (True, False):
                ms, num_evaluations, bits = bench.train(
                    Path(folder, f"run{turn}{is_followed}"), is_followed
                )
                took[is_followed].append(ms)
                weights.add(bits)
                if is_followed and num_evaluations < options.steps // options.every:
                    sys.exit(f"only {num_evaluations} evaluations were made")
            alone, followed = took[False][-1], took[True][-1]
            print(f"alone {alone:.1f} ms a step, evaluated {followed:.1f}", flush=True)
    if len(weights) != 1:
        sys.exit(f"the runs ended with {len(weights)} different weights")
    ratios = [b / a for a, b in zip(took[False], took[True], strict=True)]
    print(
        f"{num_evaluations} evaluations: {statistics.median(took[True]):.1f} ms a step, "
        f"{statistics.median(took[False]):.1f} without; "
        f"{statistics.median(ratios) - 1:+.2%} ({min(ratios) - 1:+.2%} to {max(ratios) - 1:+.2%})"
    )
    print("All ended with the same bytes of weights")


if __name__ == "__main__":
    main()
