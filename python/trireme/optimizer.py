"""A torch optimizer over a model that is split over ranks."""

from collections.abc import Mapping
from typing import Any

import torch

from trireme.distributed import model_in_use


class DistributedOptimizer(torch.optim.Optimizer):
    """A torch optimizer over a DistributedModel's parameters: each rank updates those that it has.

    Learning rate schedules take it as any optimizer.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        # No super().__init__: all state is the wrapped optimizer's.
        self.optimizer = optimizer
        self._model = model_in_use()
        self._model.optimizer = self

    def step(self, closure: Any = None) -> None:
        """Updates the parameters that have a gradient here, and gives them to the ranks that share them."""
        if closure is not None:
            raise TypeError("closures run the model again, which a step does not; leave it out")
        self.optimizer.step()
        self._model._update()

    def zero_grad(self, set_to_none: bool = True) -> None:
        self.optimizer.zero_grad(set_to_none=True)

    def local_state_dict(self) -> dict[str, Any]:
        """`state` by the parameter's name, of those on this rank; `groups`: the options of each group."""
        names = {id(p): n for n, p in self._model.module.named_parameters()}
        return {
            "state": {names[id(p)]: dict(state) for p, state in self.optimizer.state.items()},
            "groups": [_without_parameters(group) for group in self.optimizer.param_groups],
        }

    def load_local_state_dict(self, saved: Mapping[str, Any]) -> None:
        """Takes the options of the groups, and the state of parameters that are on this rank or, before the first
        step, may come to be."""
        if len(saved["groups"]) != len(self.optimizer.param_groups):
            raise ValueError(
                f"the checkpoint has {len(saved['groups'])} groups of parameters, the optimizer "
                f"{len(self.optimizer.param_groups)}"
            )
        for group, options in zip(self.optimizer.param_groups, saved["groups"], strict=True):
            group.update(options)
        for name, parameter in self._model.local_named_parameters():
            if name in saved["state"]:
                self.optimizer.state[parameter] = {
                    key: value.clone() if isinstance(value, torch.Tensor) else value
                    for key, value in saved["state"][name].items()
                }

    def __getattr__(self, name: str) -> Any:
        if name == "optimizer":  # before __init__
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    def __repr__(self) -> str:
        return f"DistributedOptimizer({self.optimizer!r})"


def _without_parameters(group: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in group.items() if key != "params"}
