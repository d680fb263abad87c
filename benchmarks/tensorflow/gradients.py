"""Gradients of two ranks reduced by trireme.tensorflow, and by TensorFlow's own MultiWorkerMirroredStrategy beside it.

gradients.py [--repeats N] [--json FILE]

Starts two processes. In each the ways take turns, call by call; a row gives medians of rank 0 and their ratio.
"""

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import tensorflow as tf

NUM_RANKS = 2
# Elements of the gradients: one; a small network's 20; a transformer's blocks, 13 MB and 100 MB.
SETS = {
    "1 x 1 Ki": [2**10],
    "20 x 16 Ki": [2**14] * 20,
    "48 of 3.3 Mi in all": [2**18, 2**10, 2**14] * 12 + [2**10] * 12,
    "1 x 4 Mi": [2**22],
    "100 x 256 Ki": [2**18] * 100,
}


def start_ranks() -> int:
    with socket.socket() as a, socket.socket() as b, socket.socket() as c:
        for free in (a, b, c):
            free.bind(("127.0.0.1", 0))
        ports = [free.getsockname()[1] for free in (a, b, c)]
    workers = [f"127.0.0.1:{port}" for port in ports[1:]]
    processes = []
    for rank in range(NUM_RANKS):
        place = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        world = {"RANK": str(rank), "WORLD_SIZE": str(NUM_RANKS), "MASTER_ADDR": "127.0.0.1"}
        world |= {"MASTER_PORT": str(ports[0]), "TF_CONFIG": json.dumps(place)}
        processes.append(subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, **world}))
    return max(process.wait() for process in processes)


def make_peer() -> Callable[[list[Any]], list[Any]]:
    """all_reduce of a list, within strategy.run."""
    options = tf.distribute.experimental.CommunicationOptions(
        bytes_per_pack=25 * 2**20,
        implementation=tf.distribute.experimental.CommunicationImplementation.RING,
    )

    def reduce(gradients: list[Any]) -> list[Any]:
        context = tf.distribute.get_replica_context()
        return list(context.all_reduce(tf.distribute.ReduceOp.MEAN, gradients, options))

    return reduce


def alternate(ways: dict[str, Callable[[], Any]], repeats: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(repeats + 3):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            if turn >= 3:
                times[name].append(time.perf_counter() - start)
    return times


def row(what: str, num_bytes: int, times: dict[str, list[float]]) -> dict[str, Any]:
    medians = {name: statistics.median(values) * 1e3 for name, values in times.items()}
    p95 = {
        name: sorted(values)[int(0.95 * (len(values) - 1))] * 1e3 for name, values in times.items()
    }
    ratio = medians["peer"] / medians["trireme"]
    return {"what": what, "bytes": num_bytes, "median_ms": medians, "p95_ms": p95, "ratio": ratio}


def reductions(strategy: Any, repeats: int) -> list[dict[str, Any]]:
    import trireme.tensorflow as tt
    from trireme.tensorflow.fusion import reduce_gradients

    peer = make_peer()
    rows = []
    for what, sizes in SETS.items():
        variables = [tf.Variable(tf.fill([size], float(tt.rank() + 1))) for size in sizes]

        @tf.function
        def ours(values: Any = tuple(variables)) -> Any:
            return reduce_gradients([tf.identity(v) for v in values])

        @tf.function
        def theirs(values: Any = tuple(variables)) -> Any:
            return strategy.run(lambda: peer([tf.identity(v) for v in values]))

        for way in (ours, theirs):
            wrong = sum(int(tf.math.count_nonzero(part - 1.5)) for part in way())
            assert wrong == 0, (what, wrong)
        times = alternate({"trireme": ours, "peer": theirs}, repeats)
        rows.append(row(f"reduction of {what}", 4 * sum(sizes), times))
    return rows


def training(strategy: Any, repeats: int) -> dict[str, Any]:
    """A step of a perceptron of 8 layers of 512 x 512, 128 samples: computing, reducing, applying."""
    from trireme.tensorflow.fusion import reduce_gradients

    peer = make_peer()
    weights = [tf.Variable(tf.random.stateless_normal([512, 512], [i, 1]) / 23.0) for i in range(8)]
    x = tf.random.stateless_normal([128, 512], [9, 9])

    def step(reduce: Callable[[list[Any]], list[Any]]) -> Any:
        with tf.GradientTape() as tape:
            y = x
            for weight in weights:
                y = tf.nn.relu(y @ weight)
            loss = tf.reduce_mean(y * y)
        gradients = reduce(tape.gradient(loss, weights))
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.assign_sub(1e-6 * gradient)
        return loss

    ways = {
        "trireme": tf.function(lambda: step(lambda g: reduce_gradients(g, bucket_cap_mb=2))),
        "trireme, one bucket": tf.function(lambda: step(reduce_gradients)),
        "peer": tf.function(lambda: strategy.run(step, args=(peer,))),
        "no reduction": tf.function(lambda: step(lambda g: g)),
    }
    times = alternate(ways, repeats)
    return row("training step", 4 * 8 * 512 * 512, times)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=40)
    parser.add_argument("--json")
    arguments = parser.parse_args()
    if "RANK" not in os.environ:
        return start_ranks()

    import trireme.tensorflow as tt

    tf.config.threading.set_intra_op_parallelism_threads(1)
    strategy = tf.distribute.MultiWorkerMirroredStrategy(
        communication_options=tf.distribute.experimental.CommunicationOptions(
            implementation=tf.distribute.experimental.CommunicationImplementation.RING
        )
    )
    tt.init()
    rows = [*reductions(strategy, arguments.repeats), training(strategy, arguments.repeats)]
    if tt.rank() == 0:
        for one in rows:
            medians = ", ".join(f"{name} {ms:.2f} ms" for name, ms in one["median_ms"].items())
            print(
                f"{one['what']}, {one['bytes']} bytes: {medians}; peer / trireme {one['ratio']:.2f}"
            )
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(rows, file, indent=1)
    tt.shutdown()
    sys.stdout.flush()
    os._exit(0)  # the strategy's server waits for its peers otherwise


if __name__ == "__main__":
    sys.exit(main())
