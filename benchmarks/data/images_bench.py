"""How many JPEG images a second become training samples, beside torchvision's DataLoader and DALI?

Images of 500 x 400 pixels are decoded, randomly cropped and resized to 224 x 224, flipped, and
normalised to f32. Ours and the peers run in turn; medians of the rounds, and of the rounds' ratios.
Samples of an evaluation (resized, middle cropped) are compared first: exit code 1 where they differ
by more than two grey levels.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torchvision
from in_turn import in_turn
from photos import HEIGHT, WIDTH, make_images
from served import Served
from torch.utils.data import DataLoader
from torchvision.datasets import ImageFolder
from torchvision.io import ImageReadMode, decode_image, read_file
from torchvision.transforms import v2

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZE, BATCH = 224, 64
LEVEL = 1 / 255 / min(DEVIATION)
HERE = Path(__file__).parent


def load_bytes(path: str) -> torch.Tensor:
    return decode_image(read_file(path), ImageReadMode.RGB)


def training_of(first: list[Any]) -> v2.Compose:
    crop = v2.RandomResizedCrop(SIZE, antialias=True)
    return v2.Compose(
        [
            *first,
            crop,
            v2.RandomHorizontalFlip(),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, DEVIATION),
        ]
    )


LOADERS: dict[str, dict[str, Any]] = {
    "pil": {"transform": training_of([])},
    "tensors": {"transform": training_of([]), "loader": load_bytes},
}


class Ours(Served):
    def __init__(self, program: Path, folder: Path) -> None:
        super().__init__([program, folder, str(SIZE)])
        self.count = int(self.greeting)
        self.visit = 0

    def seconds(self, threads: int, count: int) -> float:
        self.visit += 1
        return float(self.ask(f"time {threads} {count} {self.visit}"))


def loader_timer(folder: Path, name: str, threads: int) -> Callable[[int], float]:
    """Of one thread the loader works in this process; of several it has as many processes."""
    workers = threads if threads > 1 else 0
    loader = DataLoader(
        ImageFolder(folder, **LOADERS[name]),
        batch_size=BATCH,
        shuffle=True,
        num_workers=workers,
        persistent_workers=workers > 0,
    )

    def seconds(count: int) -> float:
        begin, done = time.perf_counter(), 0
        while done < count:
            for image, _ in loader:
                done += len(image)
        return (time.perf_counter() - begin) * count / done

    return seconds


def dali_timer(python: Path, folder: Path, threads: int) -> Callable[[int], float]:
    peer = Served([python, "-B", HERE / "dali_peer.py", folder, str(SIZE), str(BATCH)])
    return lambda count: float(peer.ask(f"{threads} {count}"))


def peers_of(folder: Path, threads: int, python: Path) -> dict[str, Callable[[int], float]]:
    timers = {name: loader_timer(folder, name, threads) for name in LOADERS}
    if python.exists():
        timers["dali"] = dali_timer(python, folder, threads)
    return timers


def largest_difference(ours: Ours, folder: Path) -> float:
    path = folder.parent / "samples"
    ours.ask(f"write {path}")
    made = np.fromfile(path, np.float32).reshape(ours.count, 3, SIZE, SIZE)
    view = v2.Compose(
        [
            v2.Resize(SIZE * 256 // 224),
            v2.CenterCrop(SIZE),
            v2.ToImage(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize(MEAN, DEVIATION),
        ]
    )
    expected = ImageFolder(folder, transform=view)
    return max(
        float(np.abs(made[i] - expected[i][0].numpy()).max()) for i in range(0, ours.count, 7)
    )


def measure(ours: Ours, folder: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    for threads in arguments.threads:
        for name, theirs in peers_of(folder, threads, arguments.peers).items():
            mine = partial(ours.seconds, threads, ours.count)
            pairs = in_turn(arguments.rounds, mine, partial(theirs, ours.count))
            row = {
                "threads": threads,
                "peer": name,
                "ours_images_per_s": ours.count / statistics.median(a for a, _ in pairs),
                "peer_images_per_s": ours.count / statistics.median(b for _, b in pairs),
                "peer_over_ours": statistics.median(b / a for a, b in pairs),
            }
            rows.append(row)
            print(
                f"{threads:7d} | {name:7s} | {row['ours_images_per_s']:9.0f} | "
                f"{row['peer_images_per_s']:9.0f} | {row['peer_over_ours']:.2f}",
                flush=True,
            )
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", type=Path, required=True, help="our side, as built")
    parser.add_argument("--peers", type=Path, required=True, help="a Python that has DALI")
    parser.add_argument("--photos", type=Path, help="folder with a folder of JPEG images a class")
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", type=Path, help="write the rows here")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "images"
        make_images(folder, arguments.photos, arguments.images)
        size = sum(path.stat().st_size for path in folder.glob("*/*")) / arguments.images
        print(
            f"{arguments.images} JPEG images of {WIDTH} x {HEIGHT}, {size / 1000:.1f} kB each; "
            f"torchvision {torchvision.__version__}; load {os.getloadavg()[0]:.2f}"
        )
        ours = Ours(arguments.program, folder)
        difference = largest_difference(ours, folder) / LEVEL
        print(f"evaluation samples differ by {difference:.2f} grey levels at most")
        if difference > 2:
            return 1
        if not arguments.peers.exists():
            print("left out: DALI, which is not installed")
        print("threads | peer    | ours im/s | peer im/s | times as fast")
        rows = measure(ours, folder, arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
