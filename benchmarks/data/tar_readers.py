"""What reads tar shards in tar_bench.py: `tar_readers.py ours | webdataset SHARD..`.

Each line `in_order` or `shuffled` reads every image and class once, as bytes, and is answered by seconds, the number of
records and their sum of checksums. The shards are opened in that time.
"""

import random
import sys
import time
import zlib
from collections.abc import Callable, Iterable

Pairs = Iterable[tuple[bytes, bytes]]


def reader_of(library: str, shards: list[str]) -> Callable[[bool], Pairs]:
    if library == "webdataset":
        import webdataset

        def theirs(is_shuffled: bool) -> Pairs:
            dataset = webdataset.WebDataset(shards, shardshuffle=len(shards) * is_shuffled)
            records = dataset.shuffle(1000) if is_shuffled else dataset
            return records.to_tuple("jpg", "cls")

        return theirs

    from trireme import open_records

    def ours(is_shuffled: bool) -> Pairs:
        records = open_records(shards)
        order = list(range(len(records)))
        if is_shuffled:
            random.shuffle(order)
        return ((records.read(i, "jpg"), records.read(i, "cls")) for i in order)

    return ours


def main(library: str, shards: list[str]) -> None:
    reader = reader_of(library, shards)
    print("ready", flush=True)
    for line in sys.stdin:
        begin, found = time.perf_counter(), list(reader(line.strip() == "shuffled"))
        seconds = time.perf_counter() - begin
        checksum = sum(zlib.crc32(image) + zlib.crc32(label) for image, label in found)
        print(seconds, len(found), checksum, flush=True)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
