"""The peer of tables_bench.cc: what one would write with pyarrow.

Rows are read by index, each with its label; the row groups that were decoded last are kept, up to as many
bytes as Trireme keeps.

    tables_peer.py write FOLDER ROWS               images.parquet, images.arrow, texts.parquet
    tables_peer.py read FILE COLUMN ORDER KEEP_BYTES COUNT     prints rows, processor seconds, wrong
"""

from __future__ import annotations

import random
import sys
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

IMAGE_BYTES, TEXT_BYTES = 10_240, 75
POOL = random.Random(7).randbytes(1 << 20)


def image(index: int) -> bytes:
    """The index, what does not compress, the index."""
    at = index * 7919 % (len(POOL) - IMAGE_BYTES)
    number = index.to_bytes(8, "little")
    return number + POOL[at : at + IMAGE_BYTES - 16] + number


def text(index: int) -> str:
    words = " ".join(f"{(index * 31 + word * 17) % 9973:04d}" for word in range(20))
    return f"{index:08d} {words}"[:TEXT_BYTES]


def write(folder: Path, rows: int) -> None:
    labels = pa.array([index % 1000 for index in range(rows)], pa.int64())
    images = pa.table(
        {"image": pa.array([image(i) for i in range(rows)], pa.binary()), "label": labels}
    )
    pq.write_table(images, folder / "images.parquet", row_group_size=100)
    with pa.ipc.new_file(folder / "images.arrow", images.schema) as file:
        file.write_table(images, max_chunksize=100)
    texts = pa.table({"text": [text(i) for i in range(rows)], "label": labels})
    pq.write_table(texts, folder / "texts.parquet", row_group_size=256)


Row = tuple[Any, Any]


def parquet_rows(path: Path, column: str, keep_bytes: int) -> tuple[int, Callable[[int], Row]]:
    file = pq.ParquetFile(path)
    size = file.metadata.row_group(0).num_rows
    kept: OrderedDict[int, pa.Table] = OrderedDict()
    num_bytes = 0

    def row(index: int) -> Row:
        nonlocal num_bytes
        group, place = divmod(index, size)
        table = kept.get(group)
        if table is None:
            table = file.read_row_group(group, columns=[column, "label"], use_threads=False)
            kept[group] = table
            num_bytes += table.nbytes
            while num_bytes > keep_bytes and len(kept) > 1:
                num_bytes -= kept.popitem(last=False)[1].nbytes
        else:
            kept.move_to_end(group)
        return table[column][place].as_py(), table["label"][place].as_py()

    return file.metadata.num_rows, row


def arrow_rows(path: Path, column: str) -> tuple[int, Callable[[int], Row]]:
    file = pa.ipc.open_file(pa.memory_map(str(path)))
    batches = [file.get_batch(i) for i in range(file.num_record_batches)]
    size = batches[0].num_rows

    def row(index: int) -> Row:
        batch, place = divmod(index, size)
        return batches[batch][column][place].as_py(), batches[batch]["label"][place].as_py()

    return sum(batch.num_rows for batch in batches), row


def order_of(kind: str, rows: int) -> Iterator[int]:
    epoch = 0
    while True:
        indices = list(range(rows))
        if kind == "shuffled":
            random.Random(epoch).shuffle(indices)
        yield from indices
        epoch += 1


def is_right(column: str, index: int, row: Row) -> bool:
    value, label = row
    if label != index % 1000:
        return False
    if column == "text":
        return len(value) == TEXT_BYTES and value[:8] == f"{index:08d}"
    number = index.to_bytes(8, "little")
    return len(value) == IMAGE_BYTES and value[:8] == number and value[-8:] == number


def read(path: Path, column: str, kind: str, keep_bytes: int, count: int) -> None:
    is_arrow = path.suffix == ".arrow"
    rows, row = arrow_rows(path, column) if is_arrow else parquet_rows(path, column, keep_bytes)
    order = order_of(kind, rows)
    wrong = 0
    begin = time.process_time()
    for _ in range(count):
        index = next(order)
        wrong += not is_right(column, index, row(index))
    print(count, time.process_time() - begin, wrong)


if __name__ == "__main__":
    pa.set_cpu_count(1)
    if sys.argv[1] == "write":
        write(Path(sys.argv[2]), int(sys.argv[3]))
    else:
        read(Path(sys.argv[2]), sys.argv[3], sys.argv[4], int(sys.argv[5]), int(sys.argv[6]))
