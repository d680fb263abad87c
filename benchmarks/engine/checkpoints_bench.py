"""What checkpoints cost the steps: a T5 on two ranks that writes none, some beside its steps, and some while it waits.

A checkpoint's cost is what its step and the three after it take, from end to end, over four other steps of the same run
(medians): these machines get faster and slower by more than that from run to run. Runs in turn; all end with the same
bytes of weights.
"""

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

MODEL = ["--model", "t5", "--t5-size", "demo"]
FIRST = 3  # the steps before it capture and warm up
AFTER = 3  # steps that a checkpoint may still disturb
WAYS = {"none": "wait", "beside": "beside", "wait": "wait"}


class Bench:
    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.folder = program, folder
        self.plan = str(folder / "plan.json")
        self.call("record", "--out", str(folder))
        graph = str(folder / "train.graph.json")
        batch = ("--batch", "16", "--microbatch", "4")
        self.call("partition", "--graph", graph, *batch, "--stages", "2", "--out", self.plan)

    def call(self, *words: str) -> None:
        command = [self.program, *MODEL, "--t5-cache", str(self.folder / "cache"), *words]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{' '.join(command)}: {done.stderr}{done.stdout}")

    def train(self, run: Path, way: str, steps: int, every: int) -> "tuple[Times, bytes]":
        """Times of steps, and the weights."""
        weights = self.folder / "weights.safetensors"
        self.call(
            *("train", "--plan", self.plan, "--steps", str(steps), "--run", str(run)),
            *("--checkpoint-every", "0" if way == "none" else str(every)),
            *("--checkpoint-writes", WAYS[way], "--save", str(weights)),
        )
        lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
        ends = {line["step"]: line["time_ms"] for line in lines if "step_ms" in line}
        return Times.of(ends, every), weights.read_bytes()


@dataclass
class Times:
    """Milliseconds: of steps that no checkpoint disturbs, and what each checkpoint takes in all."""

    steps: list[float]
    costs: list[float]

    @staticmethod
    def of(ends: dict[int, float], every: int) -> "Times":
        took = {step: ends[step] - ends[step - 1] for step in ends if step > FIRST}
        begins = [step for step in took if step % every == 0 and step + AFTER in took]
        disturbed = {step + i for step in begins for i in range(AFTER + 1)}
        quiet = [ms for step, ms in took.items() if step not in disturbed]
        usual = statistics.median(quiet)
        costs = [sum(took[step + i] - usual for i in range(AFTER + 1)) for step in begins]
        return Times(quiet, costs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--steps", type=int, default=48)
    parser.add_argument("--every", type=int, default=8, help="steps between checkpoints")
    options = parser.parse_args()
    steps: dict[str, list[float]] = {way: [] for way in WAYS}
    costs: dict[str, list[float]] = {way: [] for way in WAYS}
    weights = set()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.program, Path(folder))
        for turn in range(options.rounds):
            for way in list(WAYS) if turn % 2 == 0 else reversed(WAYS):
                run = Path(folder, "run")
                times, bits = bench.train(run, way, options.steps, options.every)
                files = (run / "checkpoints").rglob("*.safetensors")
                size = max(file.stat().st_size for file in files)
                steps[way] += times.steps
                costs[way] += times.costs
                weights.add(bits)
                shutil.rmtree(run)
    if len(weights) != 1:
        sys.exit(f"the ways ended with {len(weights)} different weights")
    print(f"{size / 2**20:.0f} MiB by the fuller rank; and a part of 10 or 100 steps")
    print("checkpoints    ms a step  ms a checkpoint  quartiles     every 10  every 100")
    for way in WAYS:
        step = statistics.median(steps[way])
        low, cost, high = statistics.quantiles(costs[way], n=4)
        print(
            f"{way:12}{step:12.1f}{cost:17.1f}  {low:5.0f} {high:5.0f}  "
            f"{cost / step / 10:10.1%}{cost / step / 100:11.2%}"
        )
    print(
        "`none`: the same steps where nothing is written. All ended with the same bytes of weights"
    )


if __name__ == "__main__":
    main()
