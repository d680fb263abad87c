"""Schedules, several stages on a rank and recompute beside one another: step and memory, predicted and measured.

A T5 with six encoder layers and one decoder layer, 16 microbatches a step: on four ranks, the same cuts wherever there
are as many stages; and on two replicas that share nothing, the optimizer's state, or parameters too. Every layout
trains the same steps in turn, `--rounds` times; those of as many replicas must end with the same bytes of weights.
Where ranks share cores, measured steps are no measure of waiting: the predicted ones are of ranks with a core each.
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
    recompute: str = "none"
    replicas: int = 1
    sharded: str = ""
    runs: list[dict[str, Any]] = field(default_factory=list)
    expected: list[float] = field(default_factory=list)  # peak bytes by rank

    def ranks(self) -> int:
        return RANKS if self.replicas == 1 else self.replicas

    def stages_per_rank(self) -> int:
        return self.stages * self.replicas // self.ranks()

    def name(self) -> str:
        each = f", {self.stages_per_rank()} stages a rank" if self.stages_per_rank() > 1 else ""
        recompute = {"none": "", "all": ", recompute", "regions": ", recompute in regions"}[
            self.recompute
        ]
        replicas = f", {self.replicas} replicas" if self.replicas > 1 else ""
        return f"{self.schedule}{each}{recompute}{replicas}{self.sharded.replace('--', ', ')}"


LAYOUTS = [
    Layout("simple", RANKS),
    Layout("simple", RANKS, "all"),
    Layout("simple", RANKS, "regions"),
    Layout("interleaved", RANKS),
    Layout("interleaved", RANKS, "all"),
    Layout("interleaved", RANKS, "regions"),
    Layout("zero_bubble", RANKS),
    Layout("zero_bubble", RANKS, "regions"),
    Layout("zero_bubble_h2", RANKS),
    Layout("interleaved", 2 * RANKS),
    Layout("zero_bubble", 2 * RANKS),
    Layout("v_half", 2 * RANKS),
    Layout("v_min", 2 * RANKS),
    Layout("simple", RANKS, replicas=2),
    Layout("simple", RANKS, "regions", replicas=2),
    Layout("simple", RANKS, replicas=2, sharded="--shard-state"),
    Layout("simple", RANKS, replicas=2, sharded="--shard-parameters"),
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
            *("--batch", "32", "--stages", str(layout.stages), "--replicas", str(layout.replicas)),
            *("--lanes", str(layout.replicas)),
            *("--stages-per-rank", str(layout.stages_per_rank()), "--schedule", layout.schedule),
            *("--recompute", layout.recompute, "--no-copies", "--out", file, *cuts),
            *layout.sharded.split(),
        )
        plan = json.loads(Path(file).read_text())
        self.cuts[layout.stages] = ",".join(str(stage["begin"]) for stage in plan["stages"][1:])
        layout.expected = plan["prediction"]["expected_peak_bytes"]
        return file

    def train(self, layout: Layout, plan: str, steps: int) -> bytes:
        with tempfile.TemporaryDirectory(dir=self.folder) as run:
            self.call(
                *("train", "--plan", plan, *self.costs(), "--steps", str(steps)),
                *("--run", f"{run}/run", "--save", f"{run}/weights.safetensors"),
            )
            layout.runs.append(json.loads(Path(run, "run/run.json").read_text())["segments"][0])
            return Path(run, "weights.safetensors").read_bytes()


# Replays keep small buffers together, for as long as the last of them: no forecast counts that.
SMALL_BUFFERS = 0.005


def over_bound(layout: Layout) -> list[str]:
    """What ranks held beyond their plan's `at most`."""
    return [
        f"{layout.name()}: rank {rank} held {measured / MIB:.2f} MiB, {measured / most - 1:.2%} more than at most"
        for run in layout.runs
        for rank, measured in enumerate(run["peak_bytes"])
        if measured
        > (1 + SMALL_BUFFERS) * (most := sum(run["predicted_peak_bytes"][rank].values()))
    ]


def row(layout: Layout) -> str:
    first = layout.runs[0]
    most = [sum(rank.values()) for rank in first["predicted_peak_bytes"]]
    expected = layout.expected
    activations = max(rank.get("activations", 0) for rank in first["predicted_peak_bytes"])
    measured = first["peak_bytes"]
    off = [e / m - 1 for e, m in zip(expected, measured, strict=True)]
    fullest = off[measured.index(max(measured))]
    steps = statistics.median(run["median_step_ms"] for run in layout.runs)
    return (
        f"{layout.name():60} {first['predicted_step_ms']:9.1f} {steps:9.1f} {activations / MIB:9.1f} "
        f"{max(most) / MIB:9.1f} {max(expected) / MIB:9.1f} {max(measured) / MIB:9.1f} {100 * fullest:+7.1f} % "
        f"{100 * max(off, key=abs):+7.1f} %"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--only", default="", help="layouts whose name has this: `2 replicas`")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.program, Path(folder))
        bench.measure()
        layouts = [layout for layout in LAYOUTS if options.only in layout.name()]
        plans = [bench.plan(layout) for layout in layouts]
        weights: dict[int, set[bytes]] = {}
        for _ in range(options.rounds):
            for layout, plan in zip(layouts, plans, strict=True):
                weights.setdefault(layout.replicas, set()).add(
                    bench.train(layout, plan, options.steps)
                )
    for replicas, found in weights.items():
        if len(found) != 1:
            sys.exit(f"layouts of {replicas} replicas ended with {len(found)} different weights")
    print(
        f"{'':60} {'step ms':>9} {'measured':>9} {'activ.':>9} {'at most':>9} {'expected':>9} {'measured':>9} "
        f"{'fullest':>9} {'furthest':>9}"
    )
    for layout in layouts:
        print(row(layout))
    print(
        "layouts of as many replicas ended with the same bytes of weights; peaks in MiB; `fullest`, `furthest`: how "
        "far the expected peak is off for the rank that held most, and for the one where it is worst"
    )
    beyond = [text for layout in layouts for text in over_bound(layout)]
    if beyond:
        sys.exit("\n".join(beyond))


main()
