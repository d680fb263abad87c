"""Data parallelism for TensorFlow: every rank holds the model and trains on its own part of each batch.

No torch. Ranks are started by `trireme launch`, mpirun, srun or torchrun. Horovod's names, where they mean the same.
"""

from trireme.tensorflow import callbacks
from trireme.tensorflow.callbacks import BroadcastGlobalVariablesCallback, MetricAverageCallback
from trireme.tensorflow.collectives import (
    Average,
    Max,
    Min,
    Product,
    Reduction,
    Sum,
    allgather,
    allreduce,
    broadcast,
    broadcast_variables,
    grouped_allreduce,
)
from trireme.tensorflow.optimizer import DistributedOptimizer
from trireme.tensorflow.ranks import init, is_initialized, local_rank, rank, shutdown, size
from trireme.tensorflow.tape import DistributedGradientTape

__all__ = [
    "Average",
    "BroadcastGlobalVariablesCallback",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "Max",
    "MetricAverageCallback",
    "Min",
    "Product",
    "Reduction",
    "Sum",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_variables",
    "callbacks",
    "grouped_allreduce",
    "init",
    "is_initialized",
    "local_rank",
    "rank",
    "shutdown",
    "size",
]
