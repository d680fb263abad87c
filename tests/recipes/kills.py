"""A training on images that are cropped and flipped at random has the weights of one that nobody disturbed, killed with
SIGKILL at many moments and resumed each time with another number of ranks and of threads that read.

usage: kills.py TRIREME resnet50 | ssd KILLS
"""

import json
import os
import random
import signal
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

RANKS = (1, 2, 4)
READERS = (1, 3, 8)
CHECKPOINT_EVERY = 3


def write_png(path: Path, side: int, colour: int, draw: random.Random) -> None:
    """Noise, brighter in one of the three channels."""
    rows = b""
    for _ in range(side):
        rows += b"\0"
        for _ in range(side):
            rows += bytes(draw.randrange(256) // (1 if c == colour else 4) for c in range(3))

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", checksum)

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + parts)


def write_images(folder: Path) -> None:
    """Thirty, in a folder for each of three classes, and beside it a COCO file with a box or two on each."""
    draw = random.Random(5)
    images: list[dict[str, object]] = []
    boxes: list[dict[str, object]] = []
    for i in range(30):
        name, side = f"class{i % 3}/{i}.png", 18 + i % 5
        write_png(folder / name, side, i % 3, draw)
        images.append({"id": i, "file_name": name, "width": side, "height": side})
        for _ in range(1 + i % 2):
            x, y = draw.randrange(side - 6), draw.randrange(side - 6)
            box = [x, y, draw.randint(4, side - x), draw.randint(4, side - y)]
            entry = {"id": len(boxes), "image_id": i, "category_id": i % 3, "bbox": box}
            boxes.append(entry | {"area": box[2] * box[3], "iscrowd": 0})
    categories = [{"id": k, "name": f"class{k}"} for k in range(3)]
    coco = {"images": images, "categories": categories, "annotations": boxes}
    folder.with_name("instances.json").write_text(json.dumps(coco))


def options_of(recipe: str, images: Path) -> list[str]:
    """The smallest model that the recipe has."""
    if recipe == "ssd":
        boxes = images.with_name("instances.json")
        return f"""--ssd-images {images} --ssd-annotations {boxes} --ssd-depth 18 --ssd-width 8
            --ssd-size 32 --ssd-colors""".split()
    return f"""--resnet50-images {images} --resnet50-depth 18 --resnet50-width 8 --resnet50-size 8
        --resnet50-stem small""".split()


class Runs:
    """Trainings of one recipe in one folder."""

    def __init__(self, program: str, recipe: str, folder: Path) -> None:
        self._program = program
        self._folder = folder
        images = folder / "images"
        write_images(images)
        self._recipe = ["--model", recipe, *options_of(recipe, images)]

    def start(
        self, run: str, ranks: int, readers: int, steps: int, *more: str
    ) -> "subprocess.Popen[bytes]":
        """Its launcher leads a group of processes, ranks and all."""
        words = f"""--run {self._folder}/{run} --resume
            --ranks {ranks} --stages {min(ranks, 2)} --replicas {max(ranks // 2, 1)} --reader-threads {readers}
            --batch 8 --microbatch 2 --lanes 4
            --steps {steps} --checkpoint-every {CHECKPOINT_EVERY} --optimizer sgd --learning-rate 0.05""".split()
        with (self._folder / "log").open("a") as log:
            return subprocess.Popen(
                [self._program, "train", *self._recipe, *words, *more],
                stdout=log,
                stderr=log,
                start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )

    def finish(self, run: str, ranks: int, readers: int, steps: int) -> bytes:
        """The weights in the end."""
        weights = self._folder / f"{run}.safetensors"
        process = self.start(run, ranks, readers, steps, "--save", str(weights))
        if process.wait(timeout=600) != 0:
            raise SystemExit((self._folder / "log").read_text()[-4000:])
        return weights.read_bytes()

    def num_steps(self, run: str) -> int:
        """Lines of steps that were done, also twice."""
        metrics = self._folder / run / "metrics.jsonl"
        return metrics.read_text().count('"step_ms"') if metrics.exists() else 0

    def newest(self, run: str) -> int:
        """The step of the newest checkpoint."""
        steps = (f.name[5:] for f in (self._folder / run / "checkpoints").glob("step-*"))
        return max((int(step) for step in steps if step.isdecimal()), default=0)


def kill_group(process: "subprocess.Popen[bytes]") -> None:
    """With SIGKILL; waits until no rank is left."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    while True:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.01)


def main(program: str, recipe: str, num_kills: int) -> None:
    draw = random.Random(7)
    with tempfile.TemporaryDirectory() as folder:
        runs = Runs(program, recipe, Path(folder))
        done = 0
        for kill in range(num_kills):
            process = runs.start("run", RANKS[kill % 3], READERS[kill // 3 % 3], 1_000_000)
            goal = runs.num_steps("run") + draw.randrange(
                2 * CHECKPOINT_EVERY, 6 * CHECKPOINT_EVERY
            )
            deadline = time.monotonic() + 300
            while runs.num_steps("run") < goal and process.poll() is None:
                assert time.monotonic() < deadline, f"no steps after {kill} kills"
                time.sleep(0.005)
            assert process.poll() is None, (Path(folder) / "log").read_text()[-4000:]
            time.sleep(draw.random() * 0.05)
            kill_group(process)
            newest = runs.newest("run")
            assert newest >= done, f"steps were lost: {newest} after {done}"
            done = newest
        assert done > num_kills, f"{done} steps in {num_kills} runs"
        steps = done + 5
        weights = runs.finish("run", 2, 3, steps)
        expected = runs.finish("undisturbed", 1, 1, steps)
        assert weights == expected, f"other weights after {num_kills} kills and {steps} steps"
        print(f"the same {len(weights)} bytes after {num_kills} kills and {steps} steps")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
