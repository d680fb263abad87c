"""Metrics of an evaluation that are made of what the model says of all samples together."""

from collections.abc import Callable, Mapping

import torch

Outputs = dict[str, torch.Tensor | list[torch.Tensor]]
MetricFunction = Callable[[Outputs], Mapping[str, float]]


class CollectedOutputs:
    """Keeps the outputs of an evaluation, then asks for its metrics."""

    def __init__(self, function: MetricFunction) -> None:
        self._function = function
        self._parts: dict[str, list[torch.Tensor]] = {}

    def add(self, outputs: dict[str, torch.Tensor]) -> None:
        """Those of the next samples, [samples, ...] each."""
        for name, tensor in outputs.items():
            self._parts.setdefault(name, []).append(tensor)

    def results(self) -> dict[str, float]:
        """By name."""
        outputs: Outputs = {name: _joined(parts) for name, parts in self._parts.items()}
        return {name: float(value) for name, value in self._function(outputs).items()}


def _joined(parts: list[torch.Tensor]) -> torch.Tensor | list[torch.Tensor]:
    if len({part.shape[1:] for part in parts}) > 1:
        return parts
    return torch.cat(parts)
