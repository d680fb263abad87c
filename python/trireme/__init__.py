"""Trireme: training of models that are too big or too slow for one device."""

from typing import Any

# Where each name is, loaded when it is first asked for: the report of a run needs no torch.
_PLACES = {
    "DistributedModel": "distributed",
    "DistributedOptimizer": "optimizer",
    "Error": "errors",
    "Graph": "_core",
    "Loss": "_core",
    "Plan": "_core",
    "Profile": "_core",
    "Reduction": "_core",
    "Session": "session",
    "StepOutput": "steps",
    "StepReport": "_core",
    "Topology": "_core",
    "World": "_core",
    **dict.fromkeys(
        (
            "barrier",
            "get_dp_group",
            "get_mp_group",
            "get_pp_group",
            "get_rdp_group",
            "get_world_group",
        ),
        "ranks",
    ),
    **dict.fromkeys(("dp_rank", "dp_size", "init", "local_rank", "mp_rank", "mp_size"), "ranks"),
    **dict.fromkeys(("pp_rank", "pp_size", "rank", "rdp_rank", "rdp_size", "size"), "ranks"),
    **dict.fromkeys(("tp_rank", "tp_size"), "ranks"),
    "mean_loss": "losses",
    "opaque": "opaque_code",
    "partition": "manual_partition",
    "plan": "planning",
    "profile": "planning",
    "record": "planning",
    "simulate": "planning",
    "verify": "planning",
    "set_partition": "manual_partition",
    "metric": "losses",
    "step": "steps",
    "resume_from_checkpoint": "checkpoint",
    "save_checkpoint": "checkpoint",
    "sum_loss": "losses",
}

__all__ = list(_PLACES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("trireme")
    if name not in _PLACES:
        raise AttributeError(f"module 'trireme' has no attribute {name!r}")
    import importlib

    if _PLACES[name] != "errors":
        _check_torch()
    return getattr(importlib.import_module(f"trireme.{_PLACES[name]}"), name)


def _check_torch() -> None:
    """ImportError where the modules are compiled for another torch: they would crash, not fail."""
    import torch  # its libraries come before ours

    from trireme import _built

    if torch.__version__.split("+")[0] != _built.TORCH.split("+")[0]:
        raise ImportError(
            f"trireme was built for torch {_built.TORCH}, and this is torch {torch.__version__}; install that one, or "
            "build trireme anew with this one: pip install --no-build-isolation --force-reinstall --no-deps ."
        )
