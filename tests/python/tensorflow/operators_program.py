"""Each rank says, as JSON, what the collectives gave it."""

import json
import sys
from collections.abc import Callable
from typing import Any

import tensorflow as tf

import trireme.tensorflow as tt

assert "torch" not in sys.modules
tt.init()
rank, size = tt.rank(), tt.size()


def reductions() -> dict[str, Any]:
    """Of 3 and 0 elements, of each dtype."""
    told = {}
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64):
        value = tf.constant([1, 2, 3], dtype) * tf.cast(rank + 1, dtype)
        told[dtype.name] = [
            tf.cast(tt.allreduce(value, op=op), tf.float64).numpy().tolist()
            for op in (tt.Sum, tt.Min, tt.Max, tt.Product)
        ]
        assert tt.allreduce(value[:0], op=tt.Sum).shape == [0]
    told["average"] = tt.allreduce(tf.constant([[1.0], [4.0]]) * float(rank + 1)).numpy().tolist()
    return told


def large() -> list[float]:
    """Larger than the fused buffer, alone and in a group."""
    value = tf.fill([9 << 20], float(rank + 1))
    alone = tt.allreduce(value, op=tt.Sum)
    group = tt.grouped_allreduce([value, tf.ones([5]), tf.ones([3], tf.int32)], op=tt.Sum)
    ends = [alone[0], alone[-1], *(part[-1] for part in group)]
    return [float(end) for end in ends]


def gathered() -> list[Any]:
    """Ranks with different numbers of rows, among them none."""
    some = tt.allgather(tf.fill([rank + 1, 2], float(rank)))
    few = tt.allgather(tf.fill([rank, 1], rank))
    return [some.numpy().tolist(), few.numpy().tolist()]


def sent() -> list[Any]:
    values = [tf.constant([rank + 5], dtype) for dtype in (tf.float32, tf.uint32, tf.int8)]
    values += [tf.constant([rank == 1, rank == 0]), tf.zeros([0])]
    variables = [
        tf.Variable([float(rank)] * 3),
        tf.Variable(rank),
        tf.Variable(rank, dtype="int64"),
    ]
    tt.broadcast_variables(variables, root_rank=1)
    told = [tt.broadcast(value, 1) for value in values] + variables
    return [one.numpy().tolist() for one in told]


def in_a_graph() -> list[float]:
    """Operators that do not depend on each other, and a loop of them."""

    @tf.function
    def graph(x: Any) -> Any:
        parts = [tt.allreduce(x * float(i), op=tt.Sum) for i in range(10)]
        total = tf.add_n(parts)
        for _ in tf.range(3):
            total = tt.allreduce(total, op=tt.Average)
        return total

    return graph(tf.constant([1.0, 2.0]) * float(rank + 1)).numpy().tolist()


def differentiated() -> list[float]:
    x = tf.Variable([1.0, 2.0])
    with tf.GradientTape() as tape:
        y = tf.reduce_sum(tt.allreduce(x * x, op=tt.Sum))
        y += tf.reduce_sum(tt.allgather(x) * [1.0, 2.0, 3.0, 4.0])
        y += tf.reduce_sum(tt.broadcast(x, 0))
    return tape.gradient(y, x).numpy().tolist()


def refused() -> list[str]:
    calls: list[Callable[[], Any]] = [
        lambda: tt.allreduce(tf.constant([1])),
        lambda: tt.allreduce(tf.constant(["a"])),
        lambda: tt.broadcast(tf.constant(["a"])),
        lambda: tt.broadcast(tf.constant([1.0]), 2),
        lambda: tf.function(tt.allreduce, jit_compile=True)(tf.ones([2])),
        lambda: tt.allgather(tf.ones([2, 2 + rank])),
        lambda: tt.allgather(tf.constant(1.0)),
    ]
    texts = []
    for call in calls:
        try:
            call()
            texts.append("")
        except (TypeError, ValueError, RuntimeError, tf.errors.InvalidArgumentError) as error:
            texts.append(str(error))
    return texts


told = {part.__name__: part() for part in (reductions, large, gathered, sent, in_a_graph)}
told |= {part.__name__: part() for part in (differentiated, refused)}
told["place"] = [rank, size, tt.local_rank()]
tt.shutdown()
print(json.dumps(told))
