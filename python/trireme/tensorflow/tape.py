"""tf.GradientTape whose gradients are those of all ranks."""

from types import TracebackType
from typing import Any

import tensorflow as tf

from trireme.tensorflow.collectives import Average, Reduction
from trireme.tensorflow.fusion import BUCKET_CAP_MB, reduce_gradients


class DistributedGradientTape:
    """Wraps a tf.GradientTape: `gradient` returns what it does, reduced over the ranks.

        with tf.GradientTape() as tape:
            loss = ...
        tape = DistributedGradientTape(tape)
        gradients = tape.gradient(loss, variables)

    It may also stand in the `with` itself. All else is the tape's own. For the options see
    `trireme.tensorflow.fusion.reduce_gradients`. With op=Average and a loss that is the mean over its rank's samples,
    gradients are those of the whole batch where all ranks have equally many.
    """

    def __init__(
        self,
        tape: Any,
        *,
        op: Reduction = Average,
        sparse_as_dense: bool = False,
        bucket_cap_mb: float = BUCKET_CAP_MB,
    ) -> None:
        self._tape = tape
        self._op = op
        self._sparse_as_dense = sparse_as_dense
        self._bucket_cap_mb = bucket_cap_mb

    def gradient(self, target: Any, sources: Any, *arguments: Any, **options: Any) -> Any:
        """As tf.GradientTape.gradient; `sources` the same on all ranks."""
        gradients = self._tape.gradient(target, sources, *arguments, **options)
        reduced = reduce_gradients(
            _flat(gradients),
            op=self._op,
            sparse_as_dense=self._sparse_as_dense,
            bucket_cap_mb=self._bucket_cap_mb,
        )
        return tf.nest.pack_sequence_as(sources, reduced)

    def __enter__(self) -> "DistributedGradientTape":
        self._tape.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._tape.__exit__(kind, failure, trace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tape, name)


def _flat(gradients: Any) -> list[Any]:
    """IndexedSlices stay whole."""
    return list(tf.nest.flatten(gradients, expand_composites=False))
