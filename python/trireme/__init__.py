"""Trireme: training of models that are too big or too slow for one device."""

from typing import Any

# Where each name is, loaded when it is first asked for: the report of a run needs no torch. Types: __init__.pyi.
_PLACES = {
    "Graph": "_core",
    "Loss": "_core",
    "ParameterGroup": "_core",
    "Plan": "_core",
    "Profile": "_core",
    "Reduction": "_core",
    "StepReport": "_core",
    "Topology": "_core",
    "Turn": "_core",
    "World": "_core",
    "resume_from_checkpoint": "checkpoint",
    "save_checkpoint": "checkpoint",
    "Mixed": "mixed",
    "Packed": "packed",
    "Padded": "padded",
    "Repeated": "repeated",
    "SkipDamaged": "skip_damaged",
    "Tokenized": "tokenized",
    "DistributedModel": "distributed",
    "Error": "errors",
    "mean_loss": "losses",
    "metric": "losses",
    "output": "losses",
    "sum_loss": "losses",
    "partition": "manual_partition",
    "set_partition": "manual_partition",
    "opaque": "opaque_code",
    "DistributedOptimizer": "optimizer",
    "explain": "planning",
    "plan": "planning",
    "plan_front": "planning",
    "profile": "planning",
    "record": "planning",
    "simulate": "planning",
    "timeline_figure": "planning",
    "verify": "planning",
    "barrier": "ranks",
    "dp_rank": "ranks",
    "dp_size": "ranks",
    "get_dp_group": "ranks",
    "get_mp_group": "ranks",
    "get_pp_group": "ranks",
    "get_rdp_group": "ranks",
    "get_world_group": "ranks",
    "init": "ranks",
    "local_rank": "ranks",
    "mp_rank": "ranks",
    "mp_size": "ranks",
    "pp_rank": "ranks",
    "pp_size": "ranks",
    "rank": "ranks",
    "rdp_rank": "ranks",
    "rdp_size": "ranks",
    "shutdown": "ranks",
    "size": "ranks",
    "tp_rank": "ranks",
    "tp_size": "ranks",
    "open_fixed_records": "fixed_records",
    "open_records": "records",
    "Session": "session",
    "StepOutput": "step_outputs",
    "step": "steps",
}
_COMPILED = ("_backend", "_core", "_packs")

__all__ = list(_PLACES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    import importlib

    if name == "__version__":
        from importlib.metadata import version

        return version("trireme")
    if name in _COMPILED:  # whoever imports one of them first
        importlib.import_module("trireme.abi").check_torch()
        return importlib.import_module(f"trireme.{name}")
    if name not in _PLACES:
        raise AttributeError(f"module 'trireme' has no attribute {name!r}")
    if _PLACES[name] == "_core":
        __getattr__("_core")
    return getattr(importlib.import_module(f"trireme.{_PLACES[name]}"), name)
