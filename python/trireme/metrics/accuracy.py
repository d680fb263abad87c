"""Accuracy: the share of labels that are predicted.

A label y of scores s_0 .. s_C-1 has the rank #{c : s_c > s_y} + #{c < y : s_c = s_y}; it is among the first k where
its rank is below k. So of equal scores the first counts, as torch.argmax has it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from trireme.metrics.metric import Metric, check_labels, labels_of, output_of

Hits = tuple[int, int]
"""How many are right, of how many."""


def accuracy(
    scores: str = "scores",
    labels: str = "labels",
    *,
    threshold: float | None = None,
    ignore_index: int = -100,
    name: str = "accuracy",
) -> Metric:
    """The share of labels that have the highest score; of equal scores the first counts.

    scores         name of the output [samples, .., classes], before or after a softmax; or of labels that are
                   predicted, integers [samples, ..]; or, with `threshold`, [samples, ..], one number for each label.
    labels         name of the output [samples, ..] of whole numbers or bool: 0 to classes - 1.
    threshold      of two classes, 0 and 1, or of several such labels a sample: a score above it says 1, else 0. 0.5
                   of probabilities, 0 of scores before a sigmoid.
    ignore_index   labels of this value are not counted.
    Results        `name`; NaN without labels.
    Errors         ValueError where shapes do not fit, a score is NaN, or a label is out of range.
    """
    return _Accuracy(scores, labels, 1, threshold, ignore_index, name)


def top_k_accuracy(
    k: int,
    scores: str = "scores",
    labels: str = "labels",
    *,
    ignore_index: int = -100,
    name: str | None = None,
) -> Metric:
    """The share of labels that are among the k highest scores; of equal scores the first count. As
    `sklearn.metrics.top_k_accuracy_score`, but for equal scores.

    scores         name of the output [samples, .., classes]: more classes than k.
    labels, ignore_index, Errors   as of `accuracy`.
    Results        `name`, else `top5_accuracy`; NaN without labels.
    """
    if k < 1:
        raise ValueError(f"k is {k}; give 1 or more")
    return _Accuracy(scores, labels, k, None, ignore_index, name or f"top{k}_accuracy")


@dataclass(frozen=True)
class _Accuracy(Metric):
    scores: str
    labels: str
    k: int
    threshold: float | None
    ignore_index: int
    name: str

    def of_part(self, outputs: dict[str, torch.Tensor]) -> Hits:
        scores, labels = output_of(outputs, self.scores), labels_of(outputs, self.labels)
        is_counted = labels != self.ignore_index
        is_right = self._is_right(scores, labels, is_counted) & is_counted
        return int(is_right.sum()), int(is_counted.sum())

    def results(self, parts: list[Hits]) -> Mapping[str, float]:
        right, count = (sum(column) for column in zip(*parts, strict=True)) if parts else (0, 0)
        return {self.name: right / count if count else float("nan")}

    def _is_right(
        self, scores: torch.Tensor, labels: torch.Tensor, is_counted: torch.Tensor
    ) -> torch.Tensor:
        if scores.is_floating_point() and bool(scores.isnan().any()):
            raise ValueError(f"output {self.scores!r} has a score that is NaN")
        if scores.shape == labels.shape:
            if self.threshold is not None:
                check_labels(labels[is_counted], 2, self.labels)
            return self._predictions(scores) == labels
        if scores.shape[:-1] != labels.shape or self.threshold is not None:
            raise ValueError(self._misfit(scores, labels))
        num_classes = scores.shape[-1]
        if self.k >= num_classes:
            raise ValueError(
                f"the label is always among the first {self.k} of {num_classes} classes"
            )
        check_labels(labels[is_counted], num_classes, self.labels)
        return _ranks(scores, labels.where(is_counted, 0)) < self.k

    def _predictions(self, scores: torch.Tensor) -> torch.Tensor:
        """Labels, where there is one number for each."""
        if self.threshold is not None:
            return scores > self.threshold
        if scores.is_floating_point() or self.k > 1:
            raise ValueError(
                f"output {self.scores!r} has one number for each label, shape {list(scores.shape)}; give scores of all "
                "classes, or threshold= of two: 0.5 of probabilities, 0 of scores before a sigmoid"
            )
        return scores

    def _misfit(self, scores: torch.Tensor, labels: torch.Tensor) -> str:
        wanted = "the same, with threshold=" if self.threshold is not None else "[.., classes] more"
        return (
            f"output {self.scores!r} has shape {list(scores.shape)} and {self.labels!r} {list(labels.shape)}; scores "
            f"have the labels' shape and {wanted}"
        )


def _ranks(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    """Of each label among its scores, from 0."""
    index = labels.unsqueeze(-1)
    own = scores.gather(-1, index)
    is_before = torch.arange(scores.shape[-1]) < index
    return ((scores > own) | ((scores == own) & is_before)).sum(-1)
