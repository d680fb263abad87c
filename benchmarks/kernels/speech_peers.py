"""Peers of log-mel features and of the word error rate."""

from __future__ import annotations

import sys
from pathlib import Path

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


@peer("log_mel", "torchaudio")
def log_mel_torchaudio(inputs: Inputs, threads: int) -> Peer:
    import torch

    # It has a venv of its own. Its last release knows an older CUDA than this torch, and says so; features are Python
    # over torch.
    sys.path += map(
        str, Path(__file__).resolve().parents[2].glob("build/torchaudio/venv/lib/*/site-packages")
    )
    cuda, torch.version.cuda = torch.version.cuda, None
    try:
        import torchaudio
    finally:
        torch.version.cuda = cuda
    torch.set_num_threads(threads)
    mel = torchaudio.transforms.MelSpectrogram(**{k: int(v) for k, v in inputs.options.items()})
    samples = torch.from_numpy(inputs.tensors["samples"])

    def features() -> torch.Tensor:
        with torch.inference_mode():
            return torch.log(mel(samples) + 1e-6)

    return Peer(
        f"torchaudio {torchaudio.__version__}",
        features,
        check=lambda: {"features": features().T},
    )


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
