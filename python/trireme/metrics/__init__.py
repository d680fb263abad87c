"""Metrics of an evaluation, for `metrics` of a Session: numbers about all its samples.

    from trireme.metrics import accuracy, top_k_accuracy

    def loss(model, batch):
        scores = model(batch["x"])
        return [
            trireme.mean_loss(F.cross_entropy(scores, batch["label"])),
            trireme.output(scores, "scores"),
            trireme.output(batch["label"], "labels"),
        ]

    trireme.Session(model, loss, data, evaluation=held_out, metrics=[accuracy(), top_k_accuracy(5)])

Each reads outputs by the names that it is given, and reports by `name`. They are made on rank 0, from outputs of the
samples in the order of the data, whatever the plan. What is not defined is refused or NaN, which ends the evaluation
with a message. Formulas of the packs' metrics: their headers.
"""

from trireme.metrics.accuracy import accuracy, top_k_accuracy
from trireme.metrics.average_precision import average_precision
from trireme.metrics.dice import dice
from trireme.metrics.log_loss import log_loss
from trireme.metrics.metric import Metric, MetricFunction, MetricLike, Outputs, together
from trireme.metrics.perplexity import perplexity
from trireme.metrics.roc_auc import roc_auc
from trireme.metrics.word_error_rate import word_error_rate

__all__ = [
    "Metric",
    "MetricFunction",
    "MetricLike",
    "Outputs",
    "accuracy",
    "average_precision",
    "dice",
    "log_loss",
    "perplexity",
    "roc_auc",
    "together",
    "top_k_accuracy",
    "word_error_rate",
]
