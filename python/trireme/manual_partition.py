"""Which parameters are on which stage, by hand: with `auto_partition: False`."""

import contextlib
from collections.abc import Iterator, Mapping

import torch
from torch.nn.modules.module import register_module_parameter_registration_hook

from trireme._core import Graph

_MARK = "_trireme_partition"


@contextlib.contextmanager
def partition(index: int) -> Iterator[None]:
    """Parameters that modules register inside are on this stage; of nested ones, on the innermost."""

    def mark(
        module: torch.nn.Module, name: str, parameter: torch.nn.Parameter
    ) -> torch.nn.Parameter:
        if parameter is not None and not hasattr(parameter, _MARK):
            setattr(parameter, _MARK, _partitions[-1])
        return parameter

    _partitions.append(index)
    hook = register_module_parameter_registration_hook(mark)
    try:
        yield
    finally:
        hook.remove()
        _partitions.pop()


_partitions: list[int] = []


def set_partition(module: torch.nn.Module, index: int) -> None:
    """The parameters of a module that is made already are on this stage."""
    for parameter in module.parameters():
        setattr(parameter, _MARK, index)


def partitions_of(module: torch.nn.Module, default: int) -> dict[str, int]:
    """Stage of each parameter by name."""
    return {
        name: getattr(parameter, _MARK, default)
        for name, parameter in module.named_parameters(remove_duplicate=False)
    }


def cuts_between(graph: Graph, partitions: Mapping[str, int], num_stages: int) -> list[int]:
    """Where stages begin, so that each parameter is first used on its stage. What has no parameters runs on the stage
    before, as far as possible.

    ValueError names the two parameters that are used in another order than their stages.
    """
    used = sorted(
        (position, name)
        for position, name in zip(graph.first_uses, graph.parameter_names, strict=True)
        if position >= 0
    )
    for _, name in used:
        if not 0 <= partitions[name] < num_stages:
            raise ValueError(
                f"the parameter {name} is on partition {partitions[name]}; there are 0 to {num_stages - 1}"
            )
    return [_cut_before(graph, used, partitions, stage) for stage in range(1, num_stages)]


def _cut_before(
    graph: Graph, used: list[tuple[int, str]], partitions: Mapping[str, int], stage: int
) -> int:
    before = [use for use in used if partitions[use[1]] < stage]
    after = [use for use in used if partitions[use[1]] >= stage]
    if not after:
        raise ValueError(f"no parameter is on partition {stage} or beyond; use fewer stages")
    low, high = before[-1] if before else (-1, ""), after[0]
    allowed = [cut for cut in graph.allowed_cuts if low[0] < cut <= high[0]]
    if not allowed:
        raise ValueError(
            f"stage {stage} cannot begin between the parameters {low[1]} (partition {partitions.get(low[1])}), used by "
            f"operator {low[0]}, and {high[1]} (partition {partitions[high[1]]}), used by operator {high[0]}: stages "
            "follow each other in the order in which operators run, and begin where the graph may be cut"
        )
    return allowed[-1]
