"""Damaged samples that a training passes over (docs/guides/bring_your_own_data.md).

photos = trireme.SkipDamaged(
    Photos(paths), 100, quarantine="damaged.jsonl", damaged=PIL.UnidentifiedImageError
)
trireme.Session(model, loss, photos, batch_size=256, microbatch_size=32)
"""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from trireme.errors import Error
from trireme.mixed import Mixed
from trireme.repeated import Repeated

if TYPE_CHECKING:
    from trireme.data import Samples

P = ParamSpec("P")
T = TypeVar("T")
Exceptions = type[Exception] | tuple[type[Exception], ...]


class SkipDamaged:
    """A data set whose damaged samples are replaced by the next whole one, as data::skip_damaged in C++.

    data         as for Session, also Padded, whose sample 0 has to be whole.
    max_skipped  of different samples, each process by itself; one more ends the run, naming it.
    quarantine   file that gets a line of JSON for each: {"error":"..","sample":7}. None: no file.
    damaged      what the data set raises for a damaged sample, beside trireme.Error of kind `corrupt data`, which
                 open_records gives: an exception's type, or a tuple of them. All else ends the run, and should: a
                 file that is gone may be one machine's matter.

    What replaces a sample depends on the data alone: it is the same on all ranks and threads, and after a resume. Wrap
    the parts of Mixed, and what Repeated repeats. Raises TypeError for these, ValueError for a budget below 0.
    """

    def __init__(
        self,
        data: "Samples",
        max_skipped: int,
        *,
        quarantine: str | os.PathLike[str] | None = None,
        damaged: Exceptions = (),
    ) -> None:
        if isinstance(data, (Mixed, Repeated, SkipDamaged)):
            raise TypeError(
                f"data is {type(data).__name__} already; put SkipDamaged around the data set itself"
            )
        if max_skipped < 0:
            raise ValueError(f"max_skipped is {max_skipped}; give 0 or more")
        self.data = data
        self.max_skipped = max_skipped
        self.quarantine = "" if quarantine is None else os.fspath(quarantine)
        self.damaged = damaged

    def telling(self, read: Callable[P, T]) -> Callable[P, T]:
        """`read`, with what it raises for damage as an Error of kind `corrupt data`."""

        def told(*args: P.args, **kwargs: P.kwargs) -> T:
            try:
                return read(*args, **kwargs)
            except self.damaged as failure:
                error = Error(f"{type(failure).__name__}: {failure}")
                error.kind, error.message = "corrupt data", str(error)
                raise error from failure

        return told

    def first_whole(self, read: Callable[[int, int], T], num_samples: int) -> T:
        """The first sample that is whole, of those within the budget, for the form that all have."""
        for index in range(min(num_samples, self.max_skipped + 1)):
            try:
                return read(index, 0)
            except Error as error:
                if error.kind != "corrupt data" or index + 1 in (num_samples, self.max_skipped + 1):
                    raise
        raise IndexError("the data set has no samples")
