"""What of a result with dropout does not depend on which elements are dropped.

As benchmarks/kernels/dropout_checks.h has it: results and gradients are linear in the mask, so
that dropout keeps their mean, and adds noise of a known size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import torch

    from registry import Outputs


def statistics(name: str, dropped: torch.Tensor, plain: torch.Tensor) -> Outputs:
    """The slope of a result with dropout over the one without, and the size of its noise."""
    a, b = dropped.detach().double().flatten(), plain.detach().double().flatten()
    size = b @ b
    rest = a - b
    return {
        f"{name}_slope": np.array([(a @ b / size).item()]),
        f"{name}_noise": np.array([(rest @ rest / size).item()]),
    }


def identity(
    name: str, left: list[tuple[torch.Tensor, ...]], right: list[tuple[torch.Tensor, ...]]
) -> Outputs:
    """The quotient of two sums of products, which is 1 where one mask made both."""

    def total(pairs: list[tuple[torch.Tensor, ...]]) -> float:
        products = [a.detach().double().flatten() @ b.detach().double().flatten() for a, b in pairs]
        return float(sum(product.item() for product in products))

    return {name: np.array([total(left) / total(right)])}
