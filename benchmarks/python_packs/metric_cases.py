"""Error rates, ROC AUC, components."""

import numpy as np

import trireme.ranking
import trireme.speech
import trireme.volume
from case import Case, beside, case, random
from registry import Outputs


@case("word_errors/20000")
def word_errors(threads: int) -> Case:
    words = np.array([f"w{i}" for i in range(500)])
    texts = [" ".join(row) for row in words[random().integers(0, 500, (20_000, 15))]]
    heard = [" ".join(row) for row in words[random().integers(0, 490, (20_000, 15))]]
    tensors = {
        name: np.frombuffer("\n".join(lines).encode(), np.uint8)
        for name, lines in (("reference", texts), ("hypothesis", heard))
    }

    def run() -> Outputs:
        counts = trireme.speech.count_word_errors(texts, heard)
        return {"words": np.array([counts.num_words]), "errors": np.array([counts.errors])}

    return beside("word_errors", "jiwer", threads, tensors, run, 0)


@case("auc/5000000")
def auc(threads: int) -> Case:
    scores = random().random(5_000_000).astype(np.float32)
    labels = (random().random(5_000_000) < 0.03 + scores / 10).astype(np.uint8)
    tensors = {"scores": scores, "labels": labels}

    def run() -> Outputs:
        return {"auc": np.array([trireme.ranking.roc_auc_score(labels, scores)])}

    return beside("auc", "sklearn", threads, tensors, run, 1e-12)


@case("components/128x256x256")
def components(threads: int) -> Case:
    """Numbered voxels, sizes, boxes and centroids."""
    coarse = random().random((16, 32, 32))
    smooth = coarse.repeat(8, 0).repeat(8, 1).repeat(8, 2)
    labels = (smooth > 0.6).astype(np.uint8) + (smooth > 0.9)
    import cc3d

    def run() -> Outputs:
        made = trireme.volume.connected_components(labels, connectivity=26)
        found = trireme.volume.statistics(made)
        return {"sizes": np.sort(found["voxel_counts"])}

    def theirs() -> Outputs:
        made = cc3d.connected_components(labels, connectivity=26)
        found = cc3d.statistics(made)
        return {"sizes": np.sort(found["voxel_counts"]).astype(np.int64)}

    return Case(run, theirs, "connected-components-3d", 0)
