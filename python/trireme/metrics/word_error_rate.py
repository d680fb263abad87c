"""Word error rate: trireme.speech.count_word_errors of all utterances."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

import torch

from trireme.metrics.metric import Metric, output_of
from trireme.word_errors import Costs, count_word_errors

if TYPE_CHECKING:
    from trireme._packs import WordErrors

Decode = Callable[[list[int]], str]


def word_error_rate(
    decode: Decode,
    hypotheses: str = "hypotheses",
    references: str = "references",
    *,
    padding: int | None = None,
    costs: Costs = "levenshtein",
    ignores_case: bool = False,
    name: str = "WER",
) -> Metric:
    """Substitutions, deletions and insertions of the cheapest alignments over the words of all references. As
    `jiwer.wer`, but words end at any ASCII white space.

    decode         the text of a sample's numbers, as a tokenizer's `decode` makes it: `lambda ids: bytes(ids).decode()`
                   of bytes.
    hypotheses     name of the output [samples, length], integers.
    references     name of the output [samples, length]; its length may be another.
    padding        numbers of this value are left out before `decode`.
    costs, ignores_case   as of `trireme.speech.count_word_errors`.
    Results        `name`; it may exceed 1. 0 without words and errors; infinity for errors without words, which a
                   Session refuses.
    Errors         ValueError where shapes do not fit; what `decode` raises.
    Cost           words of a reference times words of its hypothesis.
    """
    return _WordErrorRate(decode, hypotheses, references, padding, costs, ignores_case, name)


@dataclass(frozen=True)
class _WordErrorRate(Metric):
    decode: Decode
    hypotheses: str
    references: str
    padding: int | None
    costs: Costs
    ignores_case: bool
    name: str

    def of_part(self, outputs: dict[str, torch.Tensor]) -> "WordErrors":
        return self._count(
            self._texts(outputs, self.references), self._texts(outputs, self.hypotheses)
        )

    def results(self, parts: list["WordErrors"]) -> Mapping[str, float]:
        return {self.name: reduce(add, parts, self._count([], [])).word_error_rate}

    def _count(self, references: list[str], hypotheses: list[str]) -> "WordErrors":
        return count_word_errors(references, hypotheses, self.costs, self.ignores_case)

    def _texts(self, outputs: dict[str, torch.Tensor], output: str) -> list[str]:
        rows = output_of(outputs, output)
        if rows.dim() != 2 or rows.is_floating_point():
            raise ValueError(
                f"output {output!r} has shape {list(rows.shape)} and type {rows.dtype}; give integers [samples, length]"
            )
        return [self.decode([i for i in row if i != self.padding]) for row in rows.tolist()]
