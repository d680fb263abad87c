"""Peers of the word error rate."""

from __future__ import annotations

import numpy as np

from registry import Inputs, Outputs, Peer, peer


def texts(inputs: Inputs) -> tuple[list[str], list[str]]:
    """References and hypotheses."""
    reference, hypothesis = (
        inputs.tensors[name].tobytes().decode().splitlines() for name in ("reference", "hypothesis")
    )
    return reference, hypothesis


def counted(words: int, errors: int) -> Outputs:
    return {"words": np.array([words]), "errors": np.array([errors])}


@peer("word_errors", "rapidfuzz")
def word_errors_rapidfuzz(inputs: Inputs, threads: int) -> Peer:
    """Distances alone; ours also counts substitutions, deletions and insertions."""
    import rapidfuzz
    from rapidfuzz.distance import Levenshtein

    references, hypotheses = texts(inputs)

    def run() -> Outputs:
        words = errors = 0
        for reference, hypothesis in zip(references, hypotheses, strict=True):
            expected = reference.split()
            words += len(expected)
            errors += Levenshtein.distance(expected, hypothesis.split())
        return counted(words, errors)

    return Peer(f"rapidfuzz {rapidfuzz.__version__}", run)


@peer("word_errors", "jiwer")
def word_errors_jiwer(inputs: Inputs, threads: int) -> Peer:
    from importlib.metadata import version

    import jiwer

    references, hypotheses = texts(inputs)

    def run() -> Outputs:
        made = jiwer.process_words(references, hypotheses)
        wrong = made.substitutions + made.deletions
        return counted(made.hits + wrong, wrong + made.insertions)

    return Peer(f"jiwer {version('jiwer')}", run)
