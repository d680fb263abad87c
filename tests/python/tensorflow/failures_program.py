"""Two ranks that fail; each says, as JSON, what it caught, and when.

failures_program.py shape | operation | killed | raises | graph_killed
"""

import json
import os
import signal
import sys
import time
from typing import Any

import tensorflow as tf

import trireme.tensorflow as tt

how = sys.argv[1]
tt.init()
rank = tt.rank()


@tf.function
def reduce_in_graph(value: Any) -> Any:
    return tt.allreduce(value, name="w")


def call() -> Any:
    if how == "shape":
        return tt.grouped_allreduce([tf.ones([4]), tf.ones([2 + rank, 3 - rank])], name="w")
    if how == "operation":
        return tt.broadcast(tf.ones([2]), name="w") if rank == 0 else tt.allreduce(tf.ones([2]))
    tt.allreduce(tf.ones([2]))
    if rank == 1:
        print(time.time(), flush=True)
        if how == "raises":
            raise RuntimeError("the disk is full")
        os.kill(os.getpid(), signal.SIGKILL)
    return (
        reduce_in_graph(tf.ones([2]))
        if how == "graph_killed"
        else tt.allreduce(tf.ones([2]), name="w")
    )


def caught() -> dict[str, Any]:
    try:
        call()
        return {}
    except tf.errors.OpError as error:
        return {"kind": type(error).__name__, "text": error.message, "at": time.time()}


first = caught()
print(json.dumps([first, caught()]), flush=True)
os._exit(0)  # the world has ended: no goodbye
