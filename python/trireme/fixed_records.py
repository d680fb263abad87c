"""Samples that lie in files as records of one size, as of logs of clicks.

clicks = trireme.open_fixed_records(
    ["day_0.bin", "day_1.bin"],
    [("label", torch.int32, []), ("dense", torch.float32, [13]), ("words", torch.int32, [26])],
)
trireme.Session(model, loss, clicks, batch_size=2048, microbatch_size=256)
"""

import os
from collections.abc import Sequence
from typing import TypeAlias

import torch

from trireme import _core
from trireme.source_samples import SourceSamples

Path: TypeAlias = str | os.PathLike[str]


class FixedRecords(SourceSamples):
    """What `open_fixed_records` opens; `reading` says whether past the system's cache or through it."""


def open_fixed_records(
    paths: Path | Sequence[Path],
    fields: Sequence[tuple[str, torch.dtype, Sequence[int]]],
    *,
    header_bytes: int = 0,
    access: str = "by_size",
    num_in_flight: int = 64,
    ahead_bytes: int = 64 << 20,
) -> FixedRecords:
    """Samples of the first file, then of the next one (docs/guides/bring_your_own_data.md).

    paths           files here, or elsewhere as `open_records` has it; not compressed.
    fields          name, dtype and shape of what a record holds, as it lies there: little-endian, without gaps. Those
                    without a name are passed over.
    header_bytes    in front of the records of each file.
    access          "direct": past the system's cache, many requests at a time, for files larger than memory;
                    "buffered": through it; "by_size": direct for files larger than half of the memory. Speed only.
    num_in_flight, ahead_bytes    of "direct": the disk's queue, and what is read ahead, of each process.

    Raises Error of kind `invalid argument` for fields that do not fit, `corrupt data`, naming the file, where it holds
    no whole number of records, `input/output`.
    """
    many = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    return FixedRecords(
        _core.open_fixed_records(
            [os.fspath(path) for path in many],
            [(name, dtype, list(shape)) for name, dtype, shape in fields],
            header_bytes,
            access,
            num_in_flight,
            ahead_bytes,
        )
    )
