"""Dice of segmentations: trireme.volume.dice, case by case."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from trireme.metrics.metric import Metric, output_of


def dice(
    num_classes: int,
    predictions: str = "predictions",
    labels: str = "labels",
    *,
    first_class: int = 1,
    smoothing: float = 0.0,
    class_names: Sequence[str] = (),
    name: str = "Dice",
) -> Metric:
    """Of each sample (case) and class the overlap 2 |P and T| / (|P| + |T|) of the voxels P that are predicted and the
    true ones T; the mean over a case's classes, then over cases.

    num_classes   with background, 0.
    predictions   name of the output [samples, depth, height, width] or [samples, height, width]: labels, integers or
                  bool, as `scores.argmax(1)` gives them.
    labels        name of the output of that shape, labels.
    first_class   the first that counts: 1 leaves background out, 0 does not.
    smoothing     added to numerator and denominator; MLPerf's is 1e-6. Without it a class that is in neither P nor T
                  has no Dice, and means leave it out, as nnU-Net's.
    class_names   of the classes from `first_class` on: their means over cases are reported too; that of a class which
                  no case has is left out.
    Results       `name`, NaN where no case has any class; `name kidney` of each class of class_names.
    Errors        trireme.Error naming the voxel whose label is out of range; ValueError where shapes do not fit.
    Source        Dice, "Measures of the amount of ecologic association between species", 1945.
    """
    if not 0 <= first_class < num_classes:
        raise ValueError(
            f"first_class is {first_class}; give one of the classes 0 to {num_classes - 1}"
        )
    if class_names and len(set(class_names)) != num_classes - first_class:
        raise ValueError(
            f"class_names has {len(set(class_names))} names; give {num_classes - first_class} different ones, of the "
            f"classes {first_class} to {num_classes - 1}"
        )
    return _Dice(num_classes, predictions, labels, first_class, smoothing, tuple(class_names), name)


@dataclass(frozen=True)
class _Dice(Metric):
    num_classes: int
    predictions: str
    labels: str
    first_class: int
    smoothing: float
    class_names: tuple[str, ...]
    name: str

    def of_part(self, outputs: dict[str, torch.Tensor]) -> list[np.ndarray]:
        """Dice [classes that count] of each case."""
        predictions, labels = output_of(outputs, self.predictions), output_of(outputs, self.labels)
        if predictions.shape != labels.shape or labels.dim() not in (3, 4):
            raise ValueError(
                f"output {self.predictions!r} has shape {list(predictions.shape)} and {self.labels!r} "
                f"{list(labels.shape)}; give labels [samples, depth, height, width] or [samples, height, width], both "
                "alike; those of scores are scores.argmax(1)"
            )
        return [self._of_case(*case) for case in zip(predictions, labels, strict=True)]

    def results(self, parts: list[list[np.ndarray]]) -> Mapping[str, float]:
        cases = [case for part in parts for case in part]
        results = {self.name: _mean([_mean(case.tolist()) for case in cases])}
        for i, class_name in enumerate(self.class_names):
            mean = _mean([float(case[i]) for case in cases])
            if not math.isnan(mean):
                results[f"{self.name} {class_name}"] = mean
        return results

    def _of_case(self, prediction: torch.Tensor, truth: torch.Tensor) -> np.ndarray:
        from trireme import volume

        found = volume.dice(prediction.numpy(), truth.numpy(), self.num_classes, self.smoothing)
        return found[self.first_class :]


def _mean(values: Sequence[float]) -> float:
    """Of those that are not NaN; NaN without any."""
    known = [value for value in values if not math.isnan(value)]
    return math.fsum(known) / len(known) if known else math.nan
