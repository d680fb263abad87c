"""Keras optimizers that apply the gradients of all ranks."""

from typing import Any

import tensorflow as tf

from trireme.tensorflow.collectives import Average, Reduction
from trireme.tensorflow.fusion import BUCKET_CAP_MB, reduce_gradients


def DistributedOptimizer(  # noqa: N802
    optimizer: Any,
    *,
    op: Reduction = Average,
    sparse_as_dense: bool = False,
    bucket_cap_mb: float = BUCKET_CAP_MB,
) -> Any:
    """The same Keras 3 optimizer, with its state, which from now on reduces gradients over the ranks before it
    applies them; so clipping and weight decay see those of the whole batch.

    For the options see `trireme.tensorflow.fusion.reduce_gradients`. It is saved as the optimizer that it is: what
    is loaded again reduces nothing until it is wrapped.

    With loss scaling it is the outer one: DistributedOptimizer(keras.optimizers.LossScaleOptimizer(inner)); so
    ranks agree on whether a step is skipped.
    """
    if not callable(getattr(optimizer, "apply", None)):
        raise TypeError(f"{type(optimizer).__name__} is no optimizer of Keras 3: it has no apply()")
    if "apply" in vars(optimizer):
        raise ValueError("this optimizer reduces its gradients already")
    apply = optimizer.apply

    def apply_reduced(grads: Any, trainable_variables: Any = None) -> None:
        _check_unconditional()
        reduced = reduce_gradients(
            list(grads), op=op, sparse_as_dense=sparse_as_dense, bucket_cap_mb=bucket_cap_mb
        )
        apply(reduced, trainable_variables)

    # Of this one alone, not a class between: Keras saves an optimizer by its class.
    optimizer.apply = apply_reduced
    return optimizer


def _check_unconditional() -> None:
    """Ranks that decide differently would wait for each other; Keras does so when it adds a loss scale by itself."""
    if type(tf.compat.v1.get_default_graph()).__name__ == "CondBranchFuncGraph":
        raise RuntimeError(
            "a DistributedOptimizer within a condition: where ranks decide differently, they wait for each other. "
            "Of a loss scale it is the outer one: DistributedOptimizer(keras.optimizers.LossScaleOptimizer(inner))"
        )
