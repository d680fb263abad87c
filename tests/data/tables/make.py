"""Writes the tables beside it: `.venv/bin/python tests/data/tables/make.py`, with pyarrow 26.0.1 and pillow.

Ten rows each of the same columns, in every form; the tests know the values by their formulas. And three images in the
columns that Hugging Face's datasets have for them.
"""

import datetime
import decimal
import io
import struct
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from pyarrow import feather

FOLDER = Path(__file__).parent
ROWS = range(10)


def table() -> pa.Table:
    """A column of each type; what is null is so in row 3."""
    columns = {
        "id": pa.array([i - 5 for i in ROWS], pa.int64()),
        "small": pa.array([i for i in ROWS], pa.uint8()),
        "flag": pa.array([i % 3 == 0 for i in ROWS]),
        "real": pa.array([None if i == 3 else i / 4 for i in ROWS], pa.float32()),
        "half": pa.array([i / 2 for i in ROWS], pa.float32()).cast(pa.float16()),
        "word": pa.array([None if i == 3 else "é" * i for i in ROWS]),
        "blob": pa.array([bytes([i]) * i for i in ROWS], pa.large_binary()),
        "fixed": pa.array([b"%03d" % i for i in ROWS], pa.binary(3)),
        "kind": pa.array([("cat", "dog")[i % 2] for i in ROWS]).dictionary_encode(),
        "day": pa.array([datetime.date(1970, 1, 1 + i) for i in ROWS]),
        "moment": pa.array(
            [datetime.datetime(1970, 1, 1, 0, 0, i) for i in ROWS], pa.timestamp("ms")
        ),
        "tokens": pa.array(
            [None if i == 3 else list(range(i)) for i in ROWS], pa.list_(pa.int32())
        ),
        "flags": pa.array([[i % 2 == 0, True] for i in ROWS], pa.list_(pa.bool_())),
        "holes": pa.array([[i, None] for i in ROWS], pa.list_(pa.int16())),
        "box": pa.array([[i, 1, 2, 3] for i in ROWS], pa.list_(pa.float64(), 4)),
        "points": pa.array(
            [[[i, k] for k in range(i)] for i in ROWS], pa.list_(pa.list_(pa.int8(), 2))
        ),
        "image": pa.array(
            [None if i == 3 else {"bytes": b"\x89PNG%d" % i, "path": None} for i in ROWS],
            pa.struct({"bytes": pa.binary(), "path": pa.string()}),
        ),
        "deep": pa.array([{"a": {"b": i}, "c": i} for i in ROWS]),
        "nested": pa.array([[[i], []] for i in ROWS], pa.list_(pa.list_(pa.int32()))),
        "words": pa.array([["a", "b"] for _ in ROWS]),
        "price": pa.array([decimal.Decimal(i) for i in ROWS], pa.decimal128(10, 2)),
        "counts": pa.array([[("a", i)] for i in ROWS], pa.map_(pa.string(), pa.int32())),
    }
    return pa.table(columns)


def png(red: int) -> bytes:
    """Of one colour."""
    buffer = io.BytesIO()
    Image.new("RGB", (8, 6), (red, 0, 0)).save(buffer, "PNG")
    return buffer.getvalue()


def images() -> pa.Table:
    image = [{"bytes": png(red), "path": f"{red}.png"} for red in (50, 100, 150)]
    return pa.table({"image": image, "label": pa.array([2, 0, 1], pa.int64())})


def negative() -> bytes:
    """A stream that says of numbers in structs that there are -5 of them."""
    sink = io.BytesIO()
    rows = pa.table({"a": [{"b": i} for i in range(77)]})
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_table(rows)
    before, after = sink.getvalue().rsplit(struct.pack("<qq", 77, 0), 1)
    return before + struct.pack("<qq", -5, 0) + after


def main() -> None:
    rows = table()
    pq.write_table(
        rows,
        FOLDER / "snappy.parquet",
        compression="snappy",
        row_group_size=4,
        write_statistics=False,
    )
    pq.write_table(
        rows,
        FOLDER / "zstd.parquet",
        compression="zstd",
        row_group_size=5,
        use_dictionary=False,
        write_statistics=False,
        write_page_checksum=True,
        data_page_version="2.0",
    )
    pq.write_table(rows, FOLDER / "plain.parquet", compression="none", store_schema=False)
    feather.write_feather(rows, str(FOLDER / "zstd.feather"), compression="zstd", chunksize=4)
    with pa.ipc.new_file(FOLDER / "file.arrow", rows.schema) as writer:
        writer.write_table(rows, max_chunksize=4)
    with pa.ipc.new_stream(FOLDER / "stream.arrow", rows.schema) as writer:
        writer.write_table(rows, max_chunksize=3)
    pq.write_table(images(), FOLDER / "images.parquet", row_group_size=2)
    (FOLDER / "negative.arrow").write_bytes(negative())
    narrow = pa.table({"id": pa.array([1, 2], pa.int32()), "word": pa.array(["a", "b"])})
    pq.write_table(narrow, FOLDER / "other.parquet")
    with pa.ipc.new_file(FOLDER / "other.arrow", narrow.schema) as writer:
        writer.write_table(narrow)


if __name__ == "__main__":
    main()
