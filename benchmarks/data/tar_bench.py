"""How many records a second of tar shards are read, in order and shuffled, beside WebDataset?

Records are a JPEG image and its class, read as bytes in one thread of Python and kept. WebDataset shuffles shards
and, in a buffer, 1,000 records; ours the whole data set. Both run in turn; exit code 1 where they have read other
bytes.
"""

import argparse
import io
import json
import os
import statistics
import sys
import tarfile
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from in_turn import in_turn
from photos import make_images
from served import Served

NUM_SHARDS = 4
HERE = Path(__file__).parent


def write_shards(folder: Path, images: list[Path], count: int) -> list[Path]:
    shards = [folder / f"{shard:03d}.tar" for shard in range(NUM_SHARDS)]
    for shard, path in enumerate(shards):
        with tarfile.open(path, "w") as file:
            for i in range(shard, count, NUM_SHARDS):
                content = {"jpg": images[i % len(images)].read_bytes(), "cls": b"%d" % (i % 10)}
                for suffix, data in content.items():
                    member = tarfile.TarInfo(f"{i:06d}.{suffix}")
                    member.size = len(data)
                    file.addfile(member, io.BytesIO(data))
    return shards


def measure(ours: Served, peer: Served, rounds: int) -> tuple[list[dict[str, Any]], bool]:
    rows, is_equal = [], True
    for order in ("in_order", "shuffled"):
        answers = in_turn(rounds, partial(ours.ask, order), partial(peer.ask, order))
        read = [(mine.split(), other.split()) for mine, other in answers]
        is_equal &= all(mine[1:] == other[1:] for mine, other in read)
        pairs = [(float(mine[0]), float(other[0])) for mine, other in read]
        count = int(read[0][0][1])
        row = {
            "order": order,
            "ours_records_per_s": count / statistics.median(a for a, _ in pairs),
            "webdataset_records_per_s": count / statistics.median(b for _, b in pairs),
            "webdataset_over_ours": statistics.median(b / a for a, b in pairs),
        }
        rows.append(row)
        print(
            f"{order:8s} | {row['ours_records_per_s']:9.0f} | "
            f"{row['webdataset_records_per_s']:10.0f} | {row['webdataset_over_ours']:.2f}",
            flush=True,
        )
    return rows, is_equal


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, required=True, help="a Python that has WebDataset")
    parser.add_argument("--photos", type=Path, help="folder with a folder of JPEG images a class")
    parser.add_argument("--records", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the rows here")
    arguments = parser.parse_args()
    if not arguments.peers.exists():
        print("left out: WebDataset, which is not installed")
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        images = make_images(Path(temporary) / "images", arguments.photos, 256)
        shards = write_shards(Path(temporary), images, arguments.records)
        size = sum(path.stat().st_size for path in shards) / 1e6
        print(
            f"{arguments.records} records in {NUM_SHARDS} shards of {size:.0f} MB together", end=""
        )
        print(f"; load {os.getloadavg()[0]:.2f}")
        readers = [
            Served([python, "-B", HERE / "tar_readers.py", library, *shards])
            for python, library in ((sys.executable, "ours"), (arguments.peers, "webdataset"))
        ]
        print("order    | ours, 1/s | webdataset | times as fast")
        rows, is_equal = measure(readers[0], readers[1], arguments.rounds)
    if not is_equal:
        print("they have read other bytes")
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=1))
    return 0 if is_equal else 1


if __name__ == "__main__":
    sys.exit(main())
