"""Schedules, several stages on a rank and recompute beside one another: step and memory, predicted and measured.

A T5 with six encoder layers and one decoder layer on four ranks, 16 microbatches a step, the same cuts wherever there
are as many stages. Every layout trains the same steps in turn, `--rounds` times; all must end with the same bytes of
weights. Where ranks share cores, measured steps are no measure of waiting: the predicted ones are of ranks with a
core each.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

RANKS = 4
MIB = 2**20
MODEL = ["--model", "t5", "--t5-size", "demo", "--t5-layers", "6", "--t5-decoder-layers", "1"]


@dataclass
class Layout:
    """One way to train, and what its runs said of themselves: segments of run.json."""

    schedule: str
    stages: int
    recompute: str
    runs: list[dict[str, Any]] = field(default_factory=list)

    def name(self) -> str:
        each = f", {self.stages // RANKS} stages a rank" if self.stages > RANKS else ""
        return f"{self.schedule}{each}{', recompute' if self.recompute == 'all' else ''}"


LAYOUTS = [
    Layout("simple", RANKS, "none"),
    Layout("simple", RANKS, "all"),
    Layout("interleaved", RANKS, "none"),
    Layout("interleaved", RANKS, "all"),
    Layout("zero_bubble", RANKS, "none"),
    Layout("interleaved", 2 * RANKS, "none"),
    Layout("zero_bubble", 2 * RANKS, "none"),
    Layout("v_half", 2 * RANKS, "none"),
    Layout("v_min", 2 * RANKS, "none"),
]


class Bench:
    def __init__(self, program: str, folder: Path) -> None:
        self.program, self.folder = program, folder
        self.cuts: dict[int, str] = {}  # by number of stages

    def call(self, *words: str) -> None:
        cache = ["--t5-cache", str(self.folder / "cache")]
        done = subprocess.run(
            [self.program, *MODEL, *cache, *words], capture_output=True, text=True
        )
        if done.returncode != 0:
            sys.exit(f"trireme {' '.join(words)}: {done.stderr}{done.stdout}")

    def costs(self) -> list[str]:
        return [
            *("--profile", str(self.folder / "profile.json")),
            *("--topology", str(self.folder / "topology.json")),
        ]

    def measure(self) -> None:
        files = self.costs()
        self.call("record", "--out", str(self.folder))
        self.call(
            *("profile", "--ranks", str(RANKS), "--microbatch", "2"),
            *("--out", files[1], "--topology", files[3]),
        )

    def plan(self, layout: Layout) -> str:
        file = str(self.folder / f"{layout.name()}.plan.json")
        cuts = ["--cut-at", self.cuts[layout.stages]] if layout.stages in self.cuts else []
        self.call(
            *("partition", "--graph", str(self.folder / "train.graph.json"), *self.costs()),
            *("--batch", "32", "--stages", str(layout.stages)),
            *("--stages-per-rank", str(layout.stages // RANKS), "--schedule", layout.schedule),
            *("--recompute", layout.recompute, "--out", file, *cuts),
        )
        stages = json.loads(Path(file).read_text())["stages"]
        self.cuts[layout.stages] = ",".join(str(stage["begin"]) for stage in stages[1:])
        return file

    def train(self, layout: Layout, plan: str, steps: int) -> bytes:
        with tempfile.TemporaryDirectory(dir=self.folder) as run:
            self.call(
                *("train", "--plan", plan, *self.costs(), "--steps", str(steps)),
                *("--run", f"{run}/run", "--save", f"{run}/weights.safetensors"),
            )
            layout.runs.append(json.loads(Path(run, "run/run.json").read_text())["segments"][0])
            return Path(run, "weights.safetensors").read_bytes()


def row(layout: Layout) -> str:
    first = layout.runs[0]
    predicted = [sum(rank.values()) for rank in first["predicted_peak_bytes"]]
    activations = max(rank.get("activations", 0) for rank in first["predicted_peak_bytes"])
    measured = first["peak_bytes"]
    off = max((p / m - 1 for p, m in zip(predicted, measured, strict=True)), key=abs)
    steps = statistics.median(run["median_step_ms"] for run in layout.runs)
    return (
        f"{layout.name():36} {first['predicted_step_ms']:9.1f} {steps:9.1f} {activations / MIB:9.1f} "
        f"{max(predicted) / MIB:9.1f} {max(measured) / MIB:9.1f} {100 * off:+7.1f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.program, Path(folder))
        bench.measure()
        plans = [bench.plan(layout) for layout in LAYOUTS]
        weights = set()
        for _ in range(options.rounds):
            for layout, plan in zip(LAYOUTS, plans, strict=True):
                weights.add(bench.train(layout, plan, options.steps))
    if len(weights) != 1:
        sys.exit(f"the layouts ended with {len(weights)} different weights")
    print(
        f"{'':36} {'step ms':>9} {'measured':>9} {'activ.':>9} {'peak MiB':>9} {'measured':>9} {'furthest':>9}"
    )
    for layout in LAYOUTS:
        print(row(layout))
    print(
        f"all {len(LAYOUTS)} layouts ended with the same bytes of weights; `furthest`: the rank whose peak was "
        "predicted worst"
    )


main()
