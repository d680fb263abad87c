"""Trains small models on this rank's part of each batch; says losses and weights, as JSON: floats in hexadecimal.

One rank has the whole batches, so that it is what several are compared with.
"""

import json
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import trireme.tensorflow as tt

STEPS, BATCH = 12, 16
tt.init()
rank, size = tt.rank(), tt.size()
# Different on all ranks, but for the root: what is broadcast makes them equal.
keras.utils.set_random_seed(7 + rank)
random = np.random.default_rng(3)
x = random.standard_normal((STEPS, BATCH, 8)).astype("float32")
y = random.integers(0, 4, (STEPS, BATCH))
words = random.integers(0, 50, (STEPS, BATCH, 5))
mine = slice(rank * BATCH // size, (rank + 1) * BATCH // size)


def perceptron() -> Any:
    hidden = keras.layers.Dense(16, activation="relu")
    return keras.Sequential([keras.Input((8,)), hidden, keras.layers.Dense(4)])


def text_model() -> Any:
    """Its embedding's gradient is tf.IndexedSlices."""
    pooled = keras.layers.GlobalAveragePooling1D()
    return keras.Sequential(
        [
            keras.Input((5,), dtype="int64"),
            keras.layers.Embedding(50, 6),
            pooled,
            keras.layers.Dense(4),
        ]
    )


def loss_of(model: Any, inputs: Any, labels: Any) -> Any:
    return tf.reduce_mean(
        tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=model(inputs))
    )


def told(model: Any, losses: list[Any]) -> dict[str, Any]:
    weights = [float(v) for weight in model.get_weights() for v in weight.ravel()]
    return {"losses": [float(v).hex() for v in losses], "weights": [v.hex() for v in weights]}


def custom_loop(model: Any, inputs: Any, sparse_as_dense: bool = False) -> dict[str, Any]:
    optimizer = keras.optimizers.SGD(0.5, momentum=0.9)
    optimizer.build(model.trainable_variables)
    tt.broadcast_variables([*model.variables, *optimizer.variables], root_rank=0)

    @tf.function
    def step(batch: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(model, batch, labels)
        # Small buckets: several of them.
        tape = tt.DistributedGradientTape(
            tape, sparse_as_dense=sparse_as_dense, bucket_cap_mb=0.0005
        )
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return tt.allreduce(loss)

    losses = [step(inputs[i][mine], y[i][mine]) for i in range(STEPS)]
    return told(model, losses)


def fit(model: Any) -> dict[str, Any]:
    optimizer = tt.DistributedOptimizer(keras.optimizers.AdamW(0.01, clipnorm=1.0))
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer=optimizer, loss=loss, jit_compile=False)
    callbacks = [tt.BroadcastGlobalVariablesCallback(0), tt.MetricAverageCallback()]
    history = model.fit(
        x[:, mine].reshape(-1, 8),
        y[:, mine].reshape(-1),
        batch_size=BATCH // size,
        shuffle=False,
        epochs=2,
        verbose=0,
        callbacks=callbacks,
    )
    saved = keras.optimizers.serialize(optimizer)
    assert (saved["module"], saved["class_name"]) == ("keras.optimizers", "AdamW")
    assert type(keras.optimizers.deserialize(saved)) is keras.optimizers.AdamW
    return told(model, history.history["loss"])


def scaled_loss(model: Any) -> dict[str, Any]:
    """Rank 1's gradients are not finite in step 3: all skip it."""
    inner = keras.optimizers.LossScaleOptimizer(keras.optimizers.SGD(0.1), initial_scale=8.0)
    optimizer = tt.DistributedOptimizer(inner)
    optimizer.build(model.trainable_variables)
    tt.broadcast_variables([*model.variables, *optimizer.variables])

    @tf.function
    def step(batch: Any, labels: Any, factor: Any) -> None:
        with tf.GradientTape() as tape:
            loss = optimizer.scale_loss(loss_of(model, batch, labels) * factor)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    for i in range(STEPS):
        factor = np.inf if i == 3 and rank == size - 1 else 1.0
        step(x[i][mine], y[i][mine], tf.constant(factor, tf.float32))
    return told(model, [])


def refusal_of_an_inner_optimizer(model: Any) -> str:
    """Keras makes this order when it adds a loss scale by itself."""
    inner = tt.DistributedOptimizer(keras.optimizers.SGD(0.1))
    optimizer = keras.optimizers.LossScaleOptimizer(inner)
    optimizer.build(model.trainable_variables)
    gradients = [tf.zeros_like(variable) for variable in model.trainable_variables]
    try:
        tf.function(optimizer.apply)(gradients)
    except RuntimeError as error:
        return str(error)
    return ""


result = {
    "custom_loop": custom_loop(perceptron(), x),
    "fit": fit(perceptron()),
    "gathered_rows": custom_loop(text_model(), words),
    "dense_rows": custom_loop(text_model(), words, sparse_as_dense=True),
    "scaled_loss": scaled_loss(perceptron()),
    "refusal": refusal_of_an_inner_optimizer(perceptron()),
}
tt.shutdown()
print(json.dumps(result))
