"""Callbacks of Keras 3 for model.fit."""

from typing import Any

import keras
import tensorflow as tf

from trireme.tensorflow.collectives import allreduce, broadcast_variables


class BroadcastGlobalVariablesCallback(keras.callbacks.Callback):
    """All ranks start with the root's weights and optimizer state.

    Where the model is built before `fit`, at its start; else after the first batch, whose gradients and loss are
    then of different weights. Seeds of dropout stay each rank's own.
    """

    def __init__(self, root_rank: int = 0) -> None:
        super().__init__()
        self._root_rank = root_rank
        self._is_done = False

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self._is_done = False
        if self.model.built:
            self.model.optimizer.build(self.model.trainable_variables)
            self._broadcast()

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        if not self._is_done:
            self._broadcast()

    def _broadcast(self) -> None:
        variables = [*self.model.weights, *self.model.optimizer.variables]
        broadcast_variables(variables, self._root_rank)
        self._is_done = True


class MetricAverageCallback(keras.callbacks.Callback):
    """At the end of an epoch, losses and metrics become their averages over the ranks, for the callbacks after it.

    Exact where ranks have equally many samples and the metric is a mean over them.
    """

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        if not logs:
            return
        names = sorted(name for name, value in logs.items() if isinstance(value, (int, float)))
        values = tf.constant([float(logs[name]) for name in names], tf.float64)
        for name, value in zip(names, allreduce(values, name="metrics").numpy(), strict=True):
            logs[name] = float(value)
