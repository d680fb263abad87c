"""Records of files by index: tar shards, JSON lines, CSV, TFRecord, MDS, Parquet, folders, here or in a bucket.

    records = trireme.open_records(["0.tar", "1.tar"])      # or "s3://bucket/train/"
    len(records), records[7]["jpg"], records[7].keys()      # a field is bytes

A map-style data set decodes them:

    class Photos(torch.utils.data.Dataset):
        def __init__(self, paths): self.records = trireme.open_records(paths)
        def __len__(self): return len(self.records)
        def __getitem__(self, index):
            record = self.records[index]
            return {"image": decode(record["jpg"]), "label": torch.tensor(int(record["cls"]))}
"""

from __future__ import annotations

import operator
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, overload

from trireme import _core
from trireme.errors import Error

Path: TypeAlias = str | os.PathLike[str]


def open_records(
    paths: Path | Sequence[Path],
    *,
    form: str = "by_name",
    suffixes: Sequence[str] = (".jpg", ".jpeg", ".png"),
    classes: Sequence[str] = (),
    columns: Sequence[str] = (),
    separator: str | None = None,
    has_quotes: bool = True,
    unpack_folder: Path | None = None,
    unpack_max_bytes: int = 16 << 30,
    cache_bytes: int = 256 << 20,
) -> Records:
    """Opens files of records, or a folder of them, by what they are called (docs/guides/bring_your_own_data.md).

    paths       `x.tar`, `x.jsonl`, `x.csv`, `x.tsv`, `x.tfrecord`, `x.parquet`, `x.arrow`, a folder; `s3://bucket/key`,
                `gs://..`, `https://..`, which are fetched now. Records are those of the first, then of the next one.
    form        what files with other names are: `tar`, `json_lines`, `csv`, `tfrecord`, `mds`, `parquet`, `arrow`,
                `folder`.
    suffixes, classes    of a folder with a subfolder for each class: which files, and classes by number.
    columns, separator, has_quotes    of CSV: names where the first row has none; what separates values.
    unpack_folder, unpack_max_bytes    of compressed files: where their bytes are put, and how many.
    cache_bytes of Parquet and Arrow: decoded columns that are kept.

    Raises Error of kind `invalid argument` for other paths and options, `corrupt data`, naming file and record, for a
    file that is damaged or cut off, `input/output`, `timeout`. Other threads run meanwhile.
    Cost    headers or whole files are read, once.
    """
    many = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    options: dict[str, Any] = {
        "form": form,
        "suffixes": list(suffixes),
        "classes": list(classes),
        "columns": list(columns),
        "separator": separator,
        "has_quotes": has_quotes,
        "unpack_folder": "" if unpack_folder is None else os.fspath(unpack_folder),
        "unpack_max_bytes": unpack_max_bytes,
        "cache_bytes": cache_bytes,
    }
    return Records([os.fspath(path) for path in many], options)


class Record(Mapping[str, bytes]):
    """A record's fields by name. Each is read when it is asked for, and again when it is asked for again."""

    def __init__(self, records: Records, index: int) -> None:
        self._records, self._index = records, index

    def __getitem__(self, field: str) -> bytes:
        try:
            return self._records.read(self._index, field)
        except Error as error:
            if error.kind != "invalid argument" or field in self:
                raise
            raise KeyError(error.message) from error

    def __iter__(self) -> Iterator[str]:
        return iter(self._records.fields(self._index))

    def __len__(self) -> int:
        return len(self._records.fields(self._index))

    def __contains__(self, field: object) -> bool:
        return field in self._records.fields(self._index)

    def __repr__(self) -> str:
        return f"<{self._records.name(self._index)}: {', '.join(self)}>"


class Records(Sequence[Record]):
    """What `open_records` opens. Safe to use from several threads; none holds the interpreter's lock while it reads.

    Processes that are forked share the open files. Pickled, as for the workers of a DataLoader that are spawned, it is
    paths and options: whoever loads it opens the files anew, and they have to be the same ones (Error otherwise).
    """

    def __init__(self, paths: list[str], options: dict[str, Any]) -> None:
        self._paths, self._options = paths, options
        self._source = _core.open_records(paths, **options)

    def __len__(self) -> int:
        return self._source.num_records

    @overload
    def __getitem__(self, index: int) -> Record: ...
    @overload
    def __getitem__(self, index: slice) -> list[Record]: ...
    def __getitem__(self, index: int | slice) -> Record | list[Record]:
        if isinstance(index, slice):
            return [Record(self, i) for i in range(*index.indices(len(self)))]
        return Record(self, self._place(index))

    def read(self, index: int, field: str) -> bytes:
        """A field's bytes. Raises Error where the record has none of that name, or the file is not what it was."""
        return self._source.read(self._place(index), field)

    def fields(self, index: int) -> list[str]:
        """Names of a record's fields."""
        return self._source.fields(self._place(index))

    def name(self, index: int) -> str:
        """Its file, and where it lies there, for messages."""
        return self._source.name(self._place(index))

    @property
    def identity(self) -> str:
        """Tells these records from others: a hash of names and sizes, not of what lies in them."""
        return self._source.identity

    def _place(self, index: int) -> int:
        place = operator.index(index)
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(f"there is no record {index} among {len(self)}")
        return place

    def __reduce__(self) -> tuple[Any, ...]:
        return _reopen, (self._paths, self._options, self.identity)


def _reopen(paths: list[str], options: dict[str, Any], identity: str) -> Records:
    records = Records(paths, options)
    if records.identity != identity:
        error = Error(
            f"the records of {', '.join(paths)} are not those that were pickled: files were added, removed or changed"
        )
        error.kind, error.message = "corrupt data", str(error)
        raise error
    return records
