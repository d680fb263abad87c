"""Gradients fused into buckets, each reduced in one operation while the backward computes the next."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from trireme.tensorflow.collectives import Average, Reduction, allreduce, grouped_allreduce
from trireme.tensorflow.ranks import size

BUCKET_CAP_MB = 25


def reduce_gradients(
    gradients: Sequence[Any],
    *,
    op: Reduction = Average,
    sparse_as_dense: bool = False,
    bucket_cap_mb: float = BUCKET_CAP_MB,
) -> list[Any]:
    """The reduction over ranks of each gradient, in their order; None stays None.

    Buckets hold gradients of one dtype, last variable first: so the backward makes them. In a tf.function a bucket's
    reduction starts when its gradients are there and the bucket before is done, beside the rest of the backward; in
    eager code all gradients are there before. Each rank sums an equal part of every bucket.

    gradients        of the same variables on all ranks; dense, or tf.IndexedSlices, whose rows are gathered.
    sparse_as_dense  IndexedSlices become dense: less to send where most rows occur.
    bucket_cap_mb    MiB of a bucket, but for single gradients that are larger. Speed only.
    """
    results = list(gradients)
    if size() == 1:
        return results
    for index, gradient in enumerate(results):
        if sparse_as_dense and isinstance(gradient, tf.IndexedSlices):
            results[index] = tf.convert_to_tensor(gradient)
    for number, indices in enumerate(buckets_of(results, int(bucket_cap_mb * 2**20))):
        name = f"gradient bucket {number}"
        reduced = grouped_allreduce([results[i] for i in indices], op=op, name=name)
        for index, result in zip(indices, reduced, strict=True):
            results[index] = result
    for index, gradient in enumerate(results):
        if isinstance(gradient, tf.IndexedSlices):
            results[index] = allreduce(gradient, op=op, name=f"gradient {index}")
    return results


def buckets_of(gradients: Sequence[Any], cap_bytes: int) -> list[list[int]]:
    """Indices of the dense gradients, by bucket, in the order in which buckets are filled."""
    full: list[list[int]] = []
    filling: dict[Any, tuple[list[int], int]] = {}
    for index in reversed(range(len(gradients))):
        gradient = gradients[index]
        if gradient is None or isinstance(gradient, tf.IndexedSlices):
            continue
        num_bytes = (gradient.shape.num_elements() or 0) * gradient.dtype.size
        indices, filled_bytes = filling.get(gradient.dtype, ([], 0))
        if indices and filled_bytes + num_bytes > cap_bytes:
            full.append(indices)
            indices, filled_bytes = [], 0
        filling[gradient.dtype] = ([*indices, index], filled_bytes + num_bytes)
    return [*full, *(indices for indices, _ in filling.values())]
