"""Perplexity of a language model: exp of the mean -ln p of a token."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from trireme.metrics.metric import Metric, labels_of, output_of

Part = tuple[list[float], int]
"""Sums of -ln p of each sample; how many tokens."""


def perplexity(
    scores: str = "scores",
    labels: str = "labels",
    *,
    losses: str | None = None,
    ignore_index: int = -100,
    name: str = "perplexity",
) -> Metric:
    """exp of the mean cross entropy of all tokens, whatever the samples' lengths. Logarithms and sums are f64.

    scores         name of the output [samples, tokens, vocabulary], before the softmax. They travel to rank 0: of a
                   large vocabulary give `losses` instead.
    labels         name of the output [samples, tokens], integers.
    losses         name of the output [samples, tokens], in place of scores: the cross entropy of each token, as
                   `F.cross_entropy(.., reduction="none")` makes it.
    ignore_index   tokens with this label are not counted.
    Results        `name`; NaN without tokens, infinity from a mean of 709.8 on.
    Errors         ValueError where shapes do not fit, or a label is not in the vocabulary.
    Source         Jelinek et al., "Perplexity - a measure of the difficulty of speech recognition tasks", 1977.
    """
    return _Perplexity(scores, labels, losses, ignore_index, name)


@dataclass(frozen=True)
class _Perplexity(Metric):
    scores: str
    labels: str
    losses: str | None
    ignore_index: int
    name: str

    def of_part(self, outputs: dict[str, torch.Tensor]) -> Part:
        labels = labels_of(outputs, self.labels)
        is_counted = labels != self.ignore_index
        losses = self._losses(outputs, labels).double().where(is_counted, 0)
        # NumPy's sum of a row, unlike torch's, does not depend on threads.
        sums = losses.reshape(len(labels), -1).numpy().sum(1)
        return sums.tolist(), int(is_counted.sum())

    def results(self, parts: list[Part]) -> Mapping[str, float]:
        count = sum(tokens for _, tokens in parts)
        if count == 0:
            return {self.name: math.nan}
        # Rounded once, so that no cut into parts changes a bit.
        mean = math.fsum(total for sums, _ in parts for total in sums) / count
        try:
            return {self.name: math.exp(mean)}
        except OverflowError:
            return {self.name: math.inf}

    def _losses(self, outputs: dict[str, torch.Tensor], labels: torch.Tensor) -> torch.Tensor:
        given = output_of(outputs, self.losses or self.scores)
        shape = given.shape if self.losses is not None else given.shape[:-1]
        if shape != labels.shape or not given.is_floating_point():
            raise ValueError(
                f"output {self.losses or self.scores!r} has shape {list(given.shape)} and {self.labels!r} "
                f"{list(labels.shape)}; give scores [samples, tokens, vocabulary] or losses [samples, tokens], and "
                "labels [samples, tokens]"
            )
        if self.losses is not None:
            return given
        try:
            return torch.nn.functional.cross_entropy(
                given.double().reshape(-1, given.shape[-1]),
                labels.reshape(-1),
                ignore_index=self.ignore_index,
                reduction="none",
            ).view(labels.shape)
        except IndexError as error:
            raise ValueError(
                f"output {self.labels!r} has a label that is no class: {error}"
            ) from None
