"""Peers of ROC AUC and log loss."""

from __future__ import annotations

import numpy as np

from registry import Inputs, Outputs, Peer, peer


@peer("auc", "numpy")
def auc_numpy(inputs: Inputs, threads: int) -> Peer:
    """Sorts the scores of each class; positives look up how many negatives are below them."""
    scores, labels = inputs.tensors["scores"], inputs.tensors["labels"]

    def run() -> Outputs:
        is_positive = labels.view(np.bool_)
        negatives, positives = np.sort(scores[~is_positive]), np.sort(scores[is_positive])
        below = int(np.searchsorted(negatives, positives, "left").sum())
        not_above = int(np.searchsorted(negatives, positives, "right").sum())
        pairs = len(negatives) * len(positives)
        return {"auc": np.array([(below + not_above) / (2 * pairs)])}

    return Peer(f"numpy {np.__version__}, by class", run)


@peer("auc", "numpy_packed")
def auc_numpy_packed(inputs: Inputs, threads: int) -> Peer:
    """Sorts bits of scores, which are not negative here, with the label below them."""
    scores, labels = inputs.tensors["scores"], inputs.tensors["labels"]

    def run() -> Outputs:
        items = scores.view(np.uint32).astype(np.uint64) << 1 | labels
        items.sort()
        positive = items & 1
        below = np.cumsum(1 - positive)
        above = int(below[positive == 1].sum())
        values = items >> 1
        begins = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))
        positives = np.add.reduceat(positive, begins)
        sizes = np.diff(np.append(begins, len(items))).astype(np.uint64)
        ties = int((positives * (sizes - positives)).sum())
        pairs = int(below[-1]) * int(positive.sum())
        return {"auc": np.array([(2 * above - ties) / (2 * pairs)])}

    return Peer(f"numpy {np.__version__}, packed", run)


@peer("auc", "sklearn")
def auc_sklearn(inputs: Inputs, threads: int) -> Peer:
    import sklearn
    from sklearn.metrics import roc_auc_score

    scores, labels = inputs.tensors["scores"], inputs.tensors["labels"]

    def run() -> Outputs:
        return {"auc": np.array([roc_auc_score(labels, scores)])}

    return Peer(f"scikit-learn {sklearn.__version__}", run)


@peer("log_loss", "torch")
def log_loss_torch(inputs: Inputs, threads: int) -> Peer:
    import torch

    torch.set_num_threads(threads)
    probabilities = torch.from_numpy(inputs.tensors["probabilities"])
    labels = torch.from_numpy(inputs.tensors["labels"].astype(np.float32))

    def run() -> Outputs:
        loss = torch.nn.functional.binary_cross_entropy(probabilities, labels)
        return {"loss": loss[None].double()}

    return Peer(f"torch {torch.__version__}", run)


@peer("log_loss", "sklearn")
def log_loss_sklearn(inputs: Inputs, threads: int) -> Peer:
    import sklearn
    from sklearn.metrics import log_loss

    probabilities, labels = inputs.tensors["probabilities"], inputs.tensors["labels"]

    def run() -> Outputs:
        return {"loss": np.array([log_loss(labels, probabilities)])}

    return Peer(f"scikit-learn {sklearn.__version__}", run)
