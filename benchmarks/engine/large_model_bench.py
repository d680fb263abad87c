"""A BERT with four times the parameters that a rank's memory allows, on four ranks of that memory.

`--memory` is what a rank may use. The largest BERT that one rank can train within it, by the planner's word, is found
first: more blocks do not fit. Then one with four times its parameters is trained by four ranks, each with the stages
that it makes itself (`--deferred-init`). No rank may hold more than `--memory`, and the weights must be those of one
process without a limit.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

MIB = 2**20
CHANNELS = 256
BATCH = ["--batch", "16", "--microbatch", "2"]


class Bench:
    def __init__(self, program: str, folder: Path, memory: str) -> None:
        self.program, self.folder, self.memory = program, folder, memory

    def call(self, blocks: int, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        model = [
            *("--model", "bert", "--bert-size", "mini", "--bert-blocks", str(blocks)),
            # A small part is held out, so that evaluations take seconds.
            *("--bert-held-out", "0.005", "--bert-cache", str(self.folder / "cache")),
        ]
        environment = {**os.environ, "TRIREME_MEASURE": "quick"}
        return subprocess.run(
            [self.program, *model, verb, *words], capture_output=True, text=True, env=environment
        )

    def need(self, blocks: int, verb: str, *words: str) -> str:
        done = self.call(blocks, verb, *words)
        if done.returncode != 0:
            sys.exit(f"trireme {verb} with {blocks} blocks: {done.stderr}{done.stdout}")
        return done.stdout

    def fits(self, blocks: int, ranks: int) -> bool:
        """Whether there is a plan with as many stages as ranks."""
        files = {name: str(self.folder / f"{name}.json") for name in ("profile", "topology")}
        self.need(blocks, "record", "--out", str(self.folder))
        self.need(
            blocks, "profile", "--microbatch", "2", "--ranks", str(ranks),
            "--out", files["profile"], "--topology", files["topology"],
        )  # fmt: skip
        done = self.call(
            blocks, "partition", "--graph", str(self.folder / "train.graph.json"),
            "--profile", files["profile"], "--topology", files["topology"], *BATCH,
            "--stages", str(ranks), "--device-memory", self.memory, "--out", str(self.folder / "plan.json"),
        )  # fmt: skip
        if done.returncode != 0 and "fits" not in done.stderr:
            sys.exit(done.stderr)
        return done.returncode == 0

    def parameters(self, blocks: int) -> int:
        self.need(blocks, "record", "--out", str(self.folder))
        graph = json.loads((self.folder / "train.graph.json").read_text())
        total = 0
        for parameter in graph["parameters"]:
            count = 1
            for size in graph["values"][parameter["value"]]["shape"]:
                count *= int(size)
            total += count
        return total

    def largest_for_one(self) -> int:
        blocks = 0
        while self.fits(blocks + 1, 1):
            blocks += 1
        if blocks == 0:
            sys.exit(f"not even one block fits into {self.memory}; give --memory more")
        return blocks

    def train(self, blocks: int, steps: int, name: str, *words: str) -> Path:
        save = self.folder / name
        self.need(blocks, "train", "--steps", str(steps), "--save", str(save), *words)
        return save


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("program")
    parser.add_argument("--memory", default="128MiB")
    parser.add_argument("--steps", type=int, default=3)
    options = parser.parse_args()
    limit = int(re.sub("[^0-9]", "", options.memory)) * MIB
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options.program, Path(folder), options.memory)
        small = bench.largest_for_one()
        alone = bench.parameters(small)
        blocks = small
        while (parameters := bench.parameters(blocks)) < 4 * alone:
            blocks += 1
        print(f"one rank of {options.memory}: {small} blocks, {alone / 1e6:.1f} million parameters")
        run = Path(folder, "run")
        ranks = bench.train(
            blocks, options.steps, "ranks", *BATCH, "--ranks", "4", "--stages", "4",
            "--deferred-init", "--device-memory", options.memory, "--run", str(run),
        )  # fmt: skip
        segment = json.loads((run / "run.json").read_text())["segments"][0]
        peaks = segment["peak_bytes"]
        print(
            f"four ranks of as much: {blocks} blocks, {parameters / 1e6:.1f} million parameters, peaks "
            + ", ".join(f"{peak / MIB:.1f}" for peak in peaks)
            + f" MiB, {segment['median_step_ms']:.0f} ms a step"
        )
        if max(peaks) > limit:
            sys.exit(f"a rank held {max(peaks) / MIB:.1f} MiB")
        plan = str(run / segment["plan"])
        one = bench.train(blocks, options.steps, "one", "--plan", plan, "--serial")
        if one.read_bytes() != ranks.read_bytes():
            sys.exit("the ranks ended with other weights than one process")
        print("the weights are those of one process")


main()
