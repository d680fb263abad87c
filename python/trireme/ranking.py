"""Ranking: area under the ROC curve and log loss of binary labels. Arguments as scikit-learn's.

Arrays are numpy's, or what becomes one (tensors on the CPU). Computed on torch's threads, which change no bit.
"""

from typing import Any

import numpy as np

from trireme import _packs
from trireme._packs import LogLoss

_MOST_RANKS = 1 << 24  # whole numbers that f32 tells apart


def roc_auc_score(y_true: Any, y_score: Any) -> float:
    """The share of pairs of a positive and a negative in which the positive has the higher score; ties count one
    half. Counted exactly. As `sklearn.metrics.roc_auc_score` of two classes without weights.

    y_true    [n] of two values, the larger one positive.
    y_score   [n] f32, or what fits f32; f64 that does not is replaced by its ranks, which takes a sort.
    Errors    trireme.Error where a score is NaN or a class is missing; ValueError for other shapes and values.
    Cost      linear where scores are spread evenly, else a radix sort; the scores once more in memory.
    Source    Hanley and McNeil, "The meaning and use of the area under a ROC curve", 1982.
    """
    scores = _flat("y_score", y_score)
    return _packs.roc_auc(_as_f32(scores), _as_labels(y_true, len(scores)))


def log_loss(y_true: Any, y_pred: Any) -> float:
    """The mean cross entropy in nats, probabilities clipped by their type's epsilon. As `sklearn.metrics.log_loss`
    of two classes without weights; logarithms and sums are f64 for f32 too.

    y_true   [n] of 0 and 1.
    y_pred   [n] of the positive class, f32 or f64 within [0, 1].
    """
    return binary_log_loss(y_true, y_pred).mean


def binary_log_loss(y_true: Any, y_pred: Any) -> LogLoss:
    """What log loss is made of, which adds up over parts: `a + b`. It has `sum`, `num_samples`, `num_positives`,
    `mean` and `normalized_entropy` (He et al. 2014): 1 for a model that always predicts the share of positives."""
    probabilities = _flat("y_pred", y_pred)
    labels = _as_labels(y_true, len(probabilities))
    if probabilities.dtype == np.float32:
        return _packs.log_loss_f32(probabilities, labels)
    return _packs.log_loss_f64(probabilities, labels)


def _flat(name: str, values: Any) -> np.ndarray:
    array = np.asarray(values)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1 or array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} has shape {list(array.shape)} and type {array.dtype}; give [n] numbers of two classes"
        )
    return array


def _as_labels(y_true: Any, count: int) -> np.ndarray:
    """u8, 0 and 1."""
    labels = _flat("y_true", y_true)
    if len(labels) != count:
        raise ValueError(f"there are {len(labels)} labels and {count} scores; give one for each")
    if labels.dtype in (np.bool_, np.uint8):
        return labels.view(np.uint8)
    low, high = (0, 1) if len(labels) == 0 else (labels.min(), labels.max())
    if low in (0, 1) and high in (0, 1):
        low, high = 0, 1
    if not np.all((labels == low) | (labels == high)):
        raise ValueError(
            f"y_true has more than two values, {np.unique(labels)[:5].tolist()} ..; give 0 and 1"
        )
    return (labels == high).view(np.uint8)


def _as_f32(scores: np.ndarray) -> np.ndarray:
    """Scores in the same order, ties and all."""
    if scores.dtype == np.float32:
        return scores
    narrow = scores.astype(np.float32)
    if np.array_equal(narrow, scores) or np.isnan(narrow).any():
        return narrow
    values, ranks = np.unique(scores, return_inverse=True)
    if len(values) > _MOST_RANKS:
        raise ValueError(
            f"y_score has {len(values)} different values, too many to rank; round them: y_score.astype('f4')"
        )
    return ranks.astype(np.float32)
