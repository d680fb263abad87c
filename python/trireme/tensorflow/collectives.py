"""Collectives over the ranks, in eager code and within tf.function.

All ranks call the same ones in the same order. Within a tf.function they keep the program's order; elsewhere in the
graph work goes on beside them. They run on the host: where TensorFlow has GPUs, it copies.

What fails is one of tf.errors, whose text names the operation and the rank: AbortedError where a rank is lost or
gave up, DeadlineExceededError where one is late, InvalidArgumentError, on all ranks, where they ask for different
things.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any

import tensorflow as tf

from trireme.tensorflow.library import operators
from trireme.tensorflow.ranks import size, world

Tensor = Any


class Reduction(IntEnum):
    """Of `allreduce`, as trireme/wire.h numbers them."""

    SUM = 0
    AVERAGE = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4


Sum, Average, Product = Reduction.SUM, Reduction.AVERAGE, Reduction.PRODUCT
Min, Max = Reduction.MIN, Reduction.MAX

_REDUCED = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)
_MOVED = (*_REDUCED, tf.uint8, tf.bool)


def allreduce(tensor: Tensor, *, op: Reduction = Average, name: str = "") -> Tensor:
    """The reduction over ranks of their tensors: on all ranks the same bits. Differentiable for Sum and Average.

    tensor  any shape, the same on all ranks; float16, bfloat16, float32, float64, int32, int64. tf.IndexedSlices, whose
            rows may differ in number: all ranks' rows one behind the other, for Sum and Average.
    op      Average is of floating-point types.
    Cost    two copies and 2(n-1)/n of the tensor sent by each rank; rows are sent whole to all others.
    """
    if isinstance(tensor, tf.IndexedSlices):
        return _reduce_rows(tensor, op, name)
    return grouped_allreduce([tensor], op=op, name=name)[0]


def grouped_allreduce(
    tensors: Sequence[Tensor], *, op: Reduction = Average, name: str = ""
) -> list[Tensor]:
    """`allreduce` of each, in one operation for each dtype."""
    values = [tf.convert_to_tensor(tensor) for tensor in tensors]
    for value in values:
        _check_reduction(value.dtype, op)
    if size() == 1:
        return [tf.identity(value) for value in values]
    results: list[Tensor] = [None] * len(values)
    for indices in _by_dtype(values):
        reduced = _all_reduce([values[i] for i in indices], op, name)
        for index, result in zip(indices, reduced, strict=True):
            results[index] = result
    return results


def allgather(tensor: Tensor, *, name: str = "") -> Tensor:
    """All ranks' tensors, one behind the other along dimension 0, in which alone they may differ.

    tensor   [rows_of_rank, ...], 1 to 8 dimensions; the dtypes of `allreduce`, uint8, bool.
    Returns  [sum of rows, ...]
    """
    value = tf.convert_to_tensor(tensor)
    _check_moved(value.dtype)
    if size() == 1:
        return tf.identity(value)
    _check_compilable()
    result = operators().trireme_all_gather(order=world().order.handle, value=value, label=name)
    if value.shape.rank is not None:
        result.set_shape([None, *value.shape[1:]])
    return result


def broadcast(tensor: Tensor, root_rank: int = 0, *, name: str = "") -> Tensor:
    """The root's tensor. tensor: any shape and dtype with a fixed size, the same on all ranks."""
    return _broadcast_all([tf.convert_to_tensor(tensor)], root_rank, name)[0]


def broadcast_variables(variables: Iterable[Any], root_rank: int = 0) -> None:
    """Sets variables, of Keras or TensorFlow, to the values that the root has: the same list on all ranks.

    Within a tf.function it is a part of the graph. Cost: one broadcast for each dtype.
    """
    listed = list(variables)
    values = [tf.convert_to_tensor(variable) for variable in listed]
    for variable, value in zip(listed, _broadcast_all(values, root_rank, "variables"), strict=True):
        variable.assign(value)


def _all_reduce(values: list[Tensor], op: Reduction, name: str) -> list[Tensor]:
    """values: of one dtype."""
    _check_compilable()
    return operators().trireme_all_reduce(
        order=world().order.handle, values=values, reduction=int(op), label=name
    )


def _reduce_rows(rows: Any, op: Reduction, name: str) -> Any:
    if op not in (Sum, Average):
        raise ValueError(f"IndexedSlices have no {op.name}: Sum or Average, or a dense tensor")
    _check_reduction(rows.values.dtype, op)
    values = allgather(rows.values, name=f"{name} values".lstrip())
    indices = allgather(rows.indices, name=f"{name} indices".lstrip())
    if op == Average and size() > 1:
        values = values / tf.cast(size(), values.dtype)
    return tf.IndexedSlices(values, indices, rows.dense_shape)


def _broadcast_all(values: list[Tensor], root_rank: int, name: str) -> list[Tensor]:
    if not 0 <= root_rank < size():
        raise ValueError(f"root_rank={root_rank}, and there are ranks 0 to {size() - 1}")
    if size() == 1:
        return [tf.identity(value) for value in values]
    _check_compilable()
    moved = [value if value.dtype in _MOVED else _as_bytes(value) for value in values]
    results: list[Tensor] = [None] * len(values)
    for indices in _by_dtype(moved):
        sent = operators().trireme_broadcast(
            order=world().order.handle,
            values=[moved[i] for i in indices],
            root=root_rank,
            label=name,
        )
        for index, result in zip(indices, sent, strict=True):
            dtype = values[index].dtype
            results[index] = result if dtype in _MOVED else tf.bitcast(result, dtype)
    return results


def _by_dtype(values: list[Tensor]) -> list[list[int]]:
    groups: dict[Any, list[int]] = {}
    for index, value in enumerate(values):
        groups.setdefault(value.dtype, []).append(index)
    return list(groups.values())


def _as_bytes(value: Tensor) -> Tensor:
    """uint8, with a last dimension of an element's bytes where it has several."""
    if value.dtype in (tf.string, tf.resource, tf.variant):
        raise TypeError(f"{value.dtype.name} has no fixed size and cannot be broadcast")
    return tf.bitcast(value, tf.uint8)


def _check_reduction(dtype: Any, op: Reduction) -> None:
    if dtype not in _REDUCED:
        raise TypeError(f"no reduction of {dtype.name}: {', '.join(d.name for d in _REDUCED)}")
    if op == Average and not dtype.is_floating:
        raise TypeError(f"Average is of floating-point types, not {dtype.name}: take Sum")


def _check_moved(dtype: Any) -> None:
    if dtype not in _MOVED:
        raise TypeError(f"no allgather of {dtype.name}: {', '.join(d.name for d in _MOVED)}")


def _check_compilable() -> None:
    """XLA compiles no operator that waits for other ranks; its own message names neither cause nor cure."""
    from tensorflow.python.ops import control_flow_util

    if control_flow_util.GraphOrParentsInXlaContext(tf.compat.v1.get_default_graph()):
        raise RuntimeError(
            "collectives cannot be compiled by XLA: model.compile(..., jit_compile=False), and no "
            "tf.function(jit_compile=True) around them"
        )


@tf.RegisterGradient("TriremeAllReduce")
def _all_reduce_gradient(op: Any, *gradients: Tensor) -> list[Tensor]:
    reduction = Reduction(op.get_attr("reduction"))
    if reduction not in (Sum, Average):
        raise LookupError(f"allreduce has a gradient for Sum and Average, not {reduction.name}")
    return [None, *_all_reduce(list(gradients), reduction, "gradient")]


@tf.RegisterGradient("TriremeBroadcast")
def _broadcast_gradient(op: Any, *gradients: Tensor) -> list[Tensor]:
    summed = _all_reduce(list(gradients), Sum, "gradient")
    is_root = op.get_attr("root") == world().rank
    return [None, *(value if is_root else tf.zeros_like(value) for value in summed)]


@tf.RegisterGradient("TriremeAllGather")
def _all_gather_gradient(op: Any, gradient: Tensor) -> list[Tensor]:
    rows = tf.shape(op.inputs[1])[:1]
    rows_of_ranks = allgather(rows, name="gradient rows")
    first = tf.reduce_sum(rows_of_ranks[: world().rank])
    summed = _all_reduce([gradient], Sum, "gradient")[0]
    return [None, summed[first : first + rows[0]]]
