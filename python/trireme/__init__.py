"""Trireme: training of models that are too big or too slow for one device."""

from typing import Any

# Where each name is, loaded when it is first asked for: the report of a run needs no torch.
_PLACES = {
    "Error": "errors",
    "Graph": "_core",
    "Loss": "_core",
    "Plan": "_core",
    "Profile": "_core",
    "Reduction": "_core",
    "Session": "session",
    "StepReport": "_core",
    "Topology": "_core",
    "World": "_core",
    "init": "ranks",
    "mean_loss": "losses",
    "metric": "losses",
    "sum_loss": "losses",
}

__all__ = list(_PLACES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'trireme' has no attribute {name!r}")
    import importlib

    if _PLACES[name] != "errors":
        import torch  # noqa: F401  its libraries come first

    return getattr(importlib.import_module(f"trireme.{_PLACES[name]}"), name)
