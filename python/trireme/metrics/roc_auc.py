"""Area under the ROC curve, exact: trireme.ranking.roc_auc_score of all samples."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from trireme.metrics.metric import Metric, check_labels, labels_of, output_of

Columns = tuple[torch.Tensor, torch.Tensor]
"""Scores and labels [samples, columns]."""


def roc_auc(scores: str = "scores", labels: str = "labels", *, name: str = "AUC") -> Metric:
    """The share of pairs of a positive and a negative in which the positive has the higher score; ties count one half.
    Exact. As `sklearn.metrics.roc_auc_score`; of several labels a sample the mean over them (macro).

    scores    name of the output [samples] or [samples, labels], floats; any that rise with the probability will do.
    labels    name of the output of that shape: 0 and 1, or bool.
    Results   `name`.
    Errors    trireme.Error where a score is NaN or a class has no sample; ValueError where shapes do not fit.
    Cost      5 bytes a sample until the evaluation ends; then a sort.
    """
    return _RocAuc(scores, labels, name)


@dataclass(frozen=True)
class _RocAuc(Metric):
    scores: str
    labels: str
    name: str

    def of_part(self, outputs: dict[str, torch.Tensor]) -> Columns:
        scores, labels = output_of(outputs, self.scores), labels_of(outputs, self.labels)
        if scores.dim() == labels.dim() + 1 and scores.shape[-1] == 1:
            scores = scores.squeeze(-1)
        if scores.shape != labels.shape or scores.dim() not in (1, 2):
            raise ValueError(
                f"output {self.scores!r} has shape {list(scores.shape)} and {self.labels!r} {list(labels.shape)}; give "
                "[samples] of two classes or [samples, labels] of several labels, both alike"
            )
        if not scores.is_floating_point():
            raise ValueError(
                f"output {self.scores!r} has {scores.dtype}; give floating numbers: scores or probabilities"
            )
        check_labels(labels, 2, self.labels)
        columns = (len(scores), -1)
        return _plain(scores).reshape(columns), labels.to(torch.uint8).reshape(columns)

    def results(self, parts: list[Columns]) -> Mapping[str, float]:
        from trireme.ranking import roc_auc_score

        scores, labels = (torch.cat(column).numpy() for column in zip(*parts, strict=True))
        areas = [roc_auc_score(labels[:, i], scores[:, i]) for i in range(scores.shape[1])]
        return {self.name: sum(areas) / len(areas)}


def _plain(scores: torch.Tensor) -> torch.Tensor:
    """bf16 and f16, which NumPy has not or sorts slowly, as f32."""
    return scores if scores.dtype == torch.float64 else scores.float()
