"""Trireme: training of models that are too big or too slow for one device."""

from typing import Any

__all__ = ["World"]


def __getattr__(name: str) -> Any:
    """Loads the engine when it is first asked for: the report of a run needs none of it."""
    if name in __all__:
        import torch  # noqa: F401  its libraries come first

        from trireme import _core

        return getattr(_core, name)
    raise AttributeError(f"module 'trireme' has no attribute {name!r}")
