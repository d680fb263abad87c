"""Samples of different lengths behind each other in rows of one length (docs/guides/bring_your_own_data.md).

sentences = trireme.Padded(data, {"words": [128]}, {"tokens": {0: "words"}})
rows = trireme.Packed(sentences, {"words": 512})
trireme.Session(model, loss, rows, batch_size=64, microbatch_size=8)
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trireme.mixed import Mixed
from trireme.padded import Padded
from trireme.repeated import Repeated
from trireme.skip_damaged import SkipDamaged
from trireme.source_samples import SourceSamples

if TYPE_CHECKING:
    from trireme.data import Samples


class Packed:
    """A data set of rows, each of several samples one behind the other, as data::pack in C++: little is padding, and
    the model is recorded at one shape.

    data          Padded of dicts, or utterances (trireme.speech.open_utterances), or SkipDamaged around them;
                  dimensions that differ are the first of their fields. Its lengths count for the longest sample alone.
    row           of a row, by name of the dimension; None: the longest sample's.
    max_segments  samples of a row at most.
    open_rows     that are filled at a time: a sample goes into the first of them which has room, by index.

    Fields of a row, S its length, M max_segments, k = 0, 1, .. its samples:

        with a dimension that differs     [S, ...], samples behind each other, then the field's padding
        other fields, as labels           [M, ...], of sample k at k
        `words_segments`                  [S] i32: k + 1; behind the samples 0; `words` is the name of the dimension
        `words_positions`                 [S] i32: places within samples; behind them 0
        `words_lengths`                   [M] i32: of sample k; 0 where there is none

    The model keeps samples of a row apart itself: attention where segments are equal. Rows depend on the data alone.
    Finding them asks for every sample's length: give Padded a `length_of`. Raises TypeError where data does not fit.
    """

    def __init__(
        self,
        data: "Samples",
        row: Mapping[str, int] | None = None,
        *,
        max_segments: int = 32,
        open_rows: int = 64,
    ) -> None:
        inside = data.data if isinstance(data, SkipDamaged) else data
        if isinstance(inside, (Mixed, Repeated, Packed)):
            raise TypeError(
                f"data is {type(inside).__name__}; pack the data set itself, and put that into Mixed or Repeated"
            )
        if not isinstance(inside, (Padded, SourceSamples)):
            raise TypeError(
                f"data is {type(inside).__name__}; say by trireme.Padded which dimensions differ in length"
            )
        if isinstance(inside, Padded) and not isinstance(inside.first, Mapping):
            raise TypeError("samples are no dicts; rows have fields that need names")
        self.data = data
        self.row = dict(row or {})
        self.max_segments = max_segments
        self.open_rows = open_rows
