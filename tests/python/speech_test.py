"""The transducer beside torch's autograd, error rates beside jiwer."""

import random

import pytest
import torch

from trireme.errors import Error
from trireme.speech import (
    RNNTLoss,
    align_words,
    cer,
    count_word_errors,
    rnnt_loss,
    transducer_joint,
    transducer_loss,
    wer,
)

FRAMES, LABELS = torch.tensor([6, 4]), torch.tensor([3, 1])
TARGETS = torch.tensor([[1, 4, 2], [3, 3, 3]])


def exact_losses(logits: torch.Tensor, blank: int) -> torch.Tensor:
    """In f64, cell by cell."""
    log_p = logits.double().log_softmax(-1)
    losses = []
    for b in range(2):
        frames, labels = int(FRAMES[b]), int(LABELS[b])
        alpha: dict[tuple[int, int], torch.Tensor] = {}
        for t in range(frames):
            for u in range(labels + 1):
                ways = [alpha[t - 1, u] + log_p[b, t - 1, u, blank]] if t else []
                ways += [alpha[t, u - 1] + log_p[b, t, u - 1, TARGETS[b, u - 1]]] if u else []
                start = torch.zeros((), dtype=torch.float64)
                alpha[t, u] = torch.stack(ways).logsumexp(0) if ways else start
        losses.append(-alpha[frames - 1, labels] - log_p[b, frames - 1, labels, blank])
    return torch.stack(losses)


def some_logits(dtype: torch.dtype = torch.float32) -> torch.Tensor:
    generator = torch.Generator().manual_seed(1)
    return torch.randn((2, 6, 4, 5), generator=generator).to(dtype).requires_grad_()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_losses_and_gradients(dtype: torch.dtype) -> None:
    logits = some_logits(dtype)
    weight = torch.tensor([0.5, -2.0])
    results = []
    for loss in (transducer_loss(logits, TARGETS, FRAMES, LABELS), exact_losses(logits, 0)):
        (gradient,) = torch.autograd.grad((loss * weight).sum(), logits)
        results.append((loss.detach().float(), gradient.float()))
    tolerance = 1e-5 if dtype == torch.float32 else 1e-2
    for ours, exact in zip(*results, strict=True):
        torch.testing.assert_close(ours, exact, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore:Input #0 requires gradient and is not a double")
def test_the_gradient_is_that_of_differences() -> None:
    """By gradcheck, in f32: its step and tolerance are as large as that asks for."""
    loss = RNNTLoss(blank=0, reduction="sum")
    assert torch.autograd.gradcheck(
        lambda x: loss(x, TARGETS, FRAMES, LABELS),
        (some_logits(),),
        eps=1e-2,
        atol=1e-2,
        rtol=1e-2,
    )


def test_packed_is_padded() -> None:
    f, g = torch.randn(2, 6, 8), torch.randn(2, 4, 8)
    padded = transducer_joint(f, g, FRAMES, LABELS)
    packed = transducer_joint(f, g, FRAMES, LABELS, is_packed=True)
    rows = [padded[b, : FRAMES[b], : LABELS[b] + 1].flatten(0, 1) for b in range(2)]
    assert torch.equal(packed, torch.cat(rows))
    assert torch.equal(padded[0], (f[0, :, None] + g[0, None]).relu())
    assert torch.equal(
        transducer_loss(packed, TARGETS, FRAMES, LABELS),
        transducer_loss(padded, TARGETS, FRAMES, LABELS),
    )


def test_arguments_of_torchaudio() -> None:
    logits = some_logits()
    targets = TARGETS.clamp(max=3).int()
    losses = transducer_loss(logits, targets, FRAMES, LABELS, blank=4)
    lengths = (FRAMES.int(), LABELS.int())
    assert torch.equal(rnnt_loss(logits, targets, *lengths, reduction="none"), losses)
    assert torch.equal(rnnt_loss(logits, targets, *lengths, reduction="sum"), losses.sum())
    assert torch.equal(RNNTLoss()(logits, targets, *lengths), losses.mean())
    with pytest.raises(ValueError, match="clamp is 1.0; gradients are not clamped here"):
        RNNTLoss(clamp=1.0)(logits, targets, *lengths)
    with pytest.raises(ValueError, match="fused_log_softmax is False; give logits before"):
        RNNTLoss(fused_log_softmax=False)(logits, targets, *lengths)


def test_what_is_refused_names_the_sample() -> None:
    with pytest.raises(RuntimeError, match="sample 1 has 9 frames, expected 1 to 6"):
        transducer_loss(some_logits(), TARGETS, torch.tensor([6, 9]), LABELS)
    with pytest.raises(RuntimeError, match=r"logits must have shape \[2, 6, 3, 5\]"):
        transducer_loss(some_logits(), TARGETS[:, :2], FRAMES, LABELS)
    with pytest.raises(RuntimeError, match="must be of type Float or BFloat16, is Double"):
        transducer_loss(some_logits(torch.float64), TARGETS, FRAMES, LABELS)


# ---- error rates


def some_texts(count: int, seed: int) -> list[str]:
    generator = random.Random(seed)
    words = ["an", "ice", "cream", "parlour", "naïve", "café", "I", "scream"]
    return [" ".join(generator.choices(words, k=generator.randint(1, 12))) for _ in range(count)]


def test_error_rates_are_those_of_jiwer() -> None:
    jiwer = pytest.importorskip(
        "jiwer", reason="jiwer is not installed; ./dev test --judges installs it"
    )
    references, hypotheses = some_texts(200, 1), some_texts(200, 2)
    hypotheses[::10] = [""] * 20
    assert wer(references, hypotheses) == jiwer.wer(references, hypotheses)
    assert cer(references, hypotheses) == jiwer.cer(references, hypotheses)
    for reference, hypothesis in zip(references[:20], hypotheses[:20], strict=True):
        assert wer(reference, hypothesis) == jiwer.wer(reference, hypothesis)
        assert cer(reference, hypothesis) == jiwer.cer(reference, hypothesis)


def test_counts_and_alignments() -> None:
    counts = count_word_errors("the quick brown fox", "the brown Fox jumps")
    assert (counts.num_words, counts.errors) == (4, 3)
    assert (counts + counts).num_utterances == 2
    folded = count_word_errors("the quick brown fox", "the brown Fox jumps", ignores_case=True)
    assert (folded.substitutions, folded.deletions, folded.insertions) == (0, 1, 1)
    assert align_words("a b", "b") == [("deletion", "a", ""), ("match", "b", "b")]
    assert cer("a b", "a\tb") == 1 / 3
    five = ("a b c d e", "v w x y z")
    assert count_word_errors(*five, costs="sclite").substitutions == 5


def test_what_texts_are_refused() -> None:
    with pytest.raises(Error, match="there are 2 references and 1 hypotheses; give one for each"):
        wer(["a", "b"], ["a"])
    with pytest.raises(ValueError, match="costs is 'levenshtein' or 'sclite', and is 'words'"):
        count_word_errors("a", "b", costs="words")  # type: ignore[arg-type]
