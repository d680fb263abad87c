"""What a metric is, and how an evaluation makes one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Union

import torch

Outputs = dict[str, torch.Tensor | list[torch.Tensor]]
MetricFunction = Callable[[Outputs], Mapping[str, float]]
MetricLike = Union["Metric", MetricFunction, Sequence[Union["Metric", MetricFunction]]]
"""A metric, a function of all outputs, or several of these."""


class Metric(ABC):
    """Numbers about the samples of an evaluation, of whose outputs only what they say about it is kept.

    A metric of one's own is a class with these two methods. It has no state: one object serves all evaluations.
    """

    @abstractmethod
    def of_part(self, outputs: dict[str, torch.Tensor]) -> Any:
        """What to keep of the next samples.

        outputs   by name, [samples, ...] each, on the CPU.
        """

    @abstractmethod
    def results(self, parts: list[Any]) -> Mapping[str, float]:
        """The numbers by name, of what was kept of all samples, in their order."""


class AllOutputs(Metric):
    """Keeps the outputs themselves, for a user's function."""

    def __init__(self, function: MetricFunction) -> None:
        self._function = function

    def of_part(self, outputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return outputs

    def results(self, parts: list[dict[str, torch.Tensor]]) -> Mapping[str, float]:
        names = parts[0] if parts else {}
        return self._function({name: _joined([part[name] for part in parts]) for name in names})


class Together(Metric):
    """Several metrics; none may report what another does."""

    def __init__(self, metrics: Sequence[Metric]) -> None:
        self._metrics = metrics

    def of_part(self, outputs: dict[str, torch.Tensor]) -> list[Any]:
        return [metric.of_part(outputs) for metric in self._metrics]

    def results(self, parts: list[list[Any]]) -> Mapping[str, float]:
        all_results: dict[str, float] = {}
        for i, metric in enumerate(self._metrics):
            results = metric.results([part[i] for part in parts])
            for twice in all_results.keys() & results.keys():
                raise ValueError(f"two metrics are called {twice!r}; give one another name=")
            all_results.update(results)
        return all_results


def together(*metrics: MetricLike) -> Metric:
    """Several as one. A list of them, given to a Session, is the same."""
    made = [to_metric(metric) for metric in metrics]
    return made[0] if len(made) == 1 else Together(made)


def to_metric(given: MetricLike) -> Metric:
    """TypeError for what is none."""
    if isinstance(given, Metric):
        return given
    if isinstance(given, Sequence) and not isinstance(given, str):
        return together(*given)
    if callable(given) and not isinstance(given, type):
        return AllOutputs(given)
    raise TypeError(
        f"metrics is {given!r}; give one of trireme.metrics, called, as accuracy(); a function of the outputs; or "
        "a list of these"
    )


class CollectedParts:
    """An evaluation's parts, as the engine hands them over."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric
        self._parts: list[Any] = []

    def add(self, outputs: dict[str, torch.Tensor]) -> None:
        """Those of the next samples, [samples, ...] each."""
        self._parts.append(self._metric.of_part(outputs))

    def results(self) -> dict[str, float]:
        """By name."""
        return {name: float(value) for name, value in self._metric.results(self._parts).items()}


def output_of(outputs: Mapping[str, torch.Tensor], name: str) -> torch.Tensor:
    """ValueError where there is none of that name."""
    if name not in outputs:
        raise ValueError(
            f"there is no output {name!r}, only {', '.join(map(repr, outputs))}; return trireme.output(.., {name!r}) "
            "beside the loss, or name another one in the metric"
        )
    return outputs[name]


def labels_of(outputs: Mapping[str, torch.Tensor], name: str) -> torch.Tensor:
    """As i64, since u8 would take -100 for 156. ValueError where one is not whole."""
    given = output_of(outputs, name)
    labels = given.long()
    if given.is_floating_point() and not bool((labels == given).all()):
        raise ValueError(f"output {name!r} has labels that are not whole, of type {given.dtype}")
    return labels


def check_labels(labels: torch.Tensor, num_classes: int, name: str) -> None:
    """ValueError where one is not from 0 to num_classes - 1."""
    for label in labels[(labels < 0) | (labels >= num_classes)][:1].tolist():
        raise ValueError(
            f"output {name!r} has label {label}; there are classes 0 to {num_classes - 1}"
        )


def _joined(parts: list[torch.Tensor]) -> torch.Tensor | list[torch.Tensor]:
    if len({part.shape[1:] for part in parts}) > 1:
        return parts
    return torch.cat(parts)
