"""Log loss: the mean of -ln p of the class that is right."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import torch

from trireme.metrics.metric import Metric, check_labels, labels_of, output_of

Part = tuple[torch.Tensor, torch.Tensor]
"""Probabilities and labels of two classes, [samples] each; of several, losses [samples] and nothing."""


def log_loss(
    probabilities: str = "probabilities", labels: str = "labels", *, name: str = "log_loss"
) -> Metric:
    """The mean cross entropy in nats, probabilities clipped by their type's epsilon. As `sklearn.metrics.log_loss`;
    logarithms and sums are f64.

    probabilities   name of the output [samples], those of class 1 of two; or [samples, classes], rows of sum 1.
                    After a sigmoid or a softmax.
    labels          name of the output [samples]: 0 and 1 or bool, or 0 to classes - 1.
    Results         `name`; NaN without samples.
    Errors          trireme.Error for what is no probability; ValueError for rows that do not sum to 1, for labels out
                    of range and shapes that do not fit.
    Cost            5 or 8 bytes a sample until the evaluation ends.
    """
    return _LogLoss(probabilities, labels, name)


@dataclass(frozen=True)
class _LogLoss(Metric):
    probabilities: str
    labels: str
    name: str

    def of_part(self, outputs: dict[str, torch.Tensor]) -> Part:
        labels = labels_of(outputs, self.labels)
        output = output_of(outputs, self.probabilities)
        given = output if output.dtype == torch.float64 else output.float()
        if (
            labels.dim() != 1
            or given.shape[:1] != labels.shape
            or given.dim() > 2
            or not output.is_floating_point()
        ):
            raise ValueError(
                f"output {self.probabilities!r} has shape {list(given.shape)} and {self.labels!r} "
                f"{list(labels.shape)}; give floats [samples] or [samples, classes], and labels [samples]"
            )
        if given.dim() == 2 and given.shape[1] > 1:
            check_labels(labels, given.shape[1], self.labels)
            self._check_sums(given, math.sqrt(torch.finfo(output.dtype).eps))
            own = given.gather(1, labels.unsqueeze(1)).squeeze(1).double()
            epsilon = torch.finfo(given.dtype).eps
            return -own.clamp(epsilon, 1 - epsilon).log(), labels.new_empty(0)
        check_labels(labels, 2, self.labels)
        return given.flatten(), labels.to(torch.uint8)

    def results(self, parts: list[Part]) -> Mapping[str, float]:
        first, labels = (torch.cat(column) for column in zip(*parts, strict=True))
        if len(labels) == len(first) > 0:
            from trireme.ranking import log_loss as of_two

            return {self.name: of_two(labels.numpy(), first.numpy())}
        # Rounded once, so that no cut into parts changes a bit.
        return {self.name: math.fsum(first.tolist()) / len(first) if len(first) else math.nan}

    def _check_sums(self, probabilities: torch.Tensor, tolerance: float) -> None:
        sums = probabilities.double().sum(1)
        is_good = ((sums - 1).abs() <= tolerance) & (probabilities >= 0).all(1)
        for row in (~is_good).nonzero()[:1, 0].tolist():
            raise ValueError(
                f"output {self.probabilities!r} has a sample with probabilities of sum {sums[row]:g}, the least of "
                f"them {probabilities[row].min():g}; give them after a softmax"
            )
