"""Speech: audio as samples; the transducer (RNN-T), its loss and joint; word and character error rates.

    joint = trireme.speech.transducer_joint(encoded, predicted, num_frames, num_labels, dropout_p=0.1)
    loss = trireme.speech.rnnt_loss(project(joint), labels, num_frames, num_labels, blank=0)

Operators are of f32 or bf16 on the CPU and run on torch's threads, which change no bit. They pass torch.compile and
torch.export, and have a gradient, once. Formulas, sources and cost: packs/speech/kernels.
"""

import torch

from trireme import libraries
from trireme.pack_sources import SpecAugment, open_utterances
from trireme.word_errors import align_words, cer, count_word_errors, wer

libraries.load("trireme_speech")
_ops = torch.ops.trireme

__all__ = [
    "RNNTLoss",
    "SpecAugment",
    "align_words",
    "cer",
    "count_word_errors",
    "open_utterances",
    "rnnt_loss",
    "transducer_joint",
    "transducer_loss",
    "wer",
]


def transducer_joint(
    f: torch.Tensor,
    g: torch.Tensor,
    num_frames: torch.Tensor,
    num_labels: torch.Tensor,
    dropout_p: float = 0.0,
    is_packed: bool = False,
) -> torch.Tensor:
    """dropout(relu(f + g)) of every frame with every position, in one pass.

    f           f32 or bf16 [B, T, H], the encoder's frames.
    g           the same type [B, U + 1, H], the prediction network's positions.
    num_frames, num_labels   integers [B]: 1 to T, 0 to U.
    is_packed   samples behind each other without padding.
    Returns     [B, T, U + 1, H], 0 in padding; packed [rows, H], num_frames[b] x (num_labels[b] + 1) rows a sample.
    Errors      RuntimeError naming the sample whose lengths do not fit.
    """
    return _ops.transducer_joint(f, g, num_frames, num_labels, dropout_p, is_packed)


def transducer_loss(
    logits: torch.Tensor,
    labels: torch.Tensor,
    num_frames: torch.Tensor,
    num_labels: torch.Tensor,
    blank: int = 0,
) -> torch.Tensor:
    """The negative log-likelihood of each sample, fused with the softmax over the vocabulary.

    logits   f32 or bf16 [B, T, U + 1, V], or packed [rows, V] as `transducer_joint` packs; no log-softmax before.
    labels   integers [B, U], none of them the blank; those behind num_labels[b] are not read.
    Returns  f32 [B], in nats; infinity where no alignment is possible.
    Errors   RuntimeError naming the sample: lengths that do not fit, a label that is the blank or not in [0, V).
    Cost     reads the logits twice, writes their gradient once.
    Source   Graves, "Sequence transduction with recurrent neural networks", 2012.
    """
    return _ops.transducer_loss(logits, labels, num_frames, num_labels, blank)


def rnnt_loss(
    logits: torch.Tensor,
    targets: torch.Tensor,
    logit_lengths: torch.Tensor,
    target_lengths: torch.Tensor,
    blank: int = -1,
    clamp: float = -1,
    reduction: str = "mean",
    fused_log_softmax: bool = True,
) -> torch.Tensor:
    """`transducer_loss` with the arguments of `torchaudio.functional.rnnt_loss`.

    blank       an index of V; negative ones count from its end.
    clamp       has to be 0 or less: gradients are not clamped.
    reduction   `mean`, `sum` or `none`.
    """
    if clamp > 0:
        raise ValueError(
            f"clamp is {clamp}; gradients are not clamped here, clip those of parameters"
        )
    if not fused_log_softmax:
        raise ValueError(
            "fused_log_softmax is False; give logits before their log-softmax, and True"
        )
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"reduction is one of mean, sum, none, and is {reduction!r}")
    losses = transducer_loss(
        logits,
        targets,
        logit_lengths,
        target_lengths,
        blank if blank >= 0 else blank + logits.shape[-1],
    )
    if reduction == "none":
        return losses
    return losses.mean() if reduction == "mean" else losses.sum()


class RNNTLoss(torch.nn.Module):
    """`rnnt_loss` as a module. As `torchaudio.transforms.RNNTLoss`."""

    def __init__(
        self,
        blank: int = -1,
        clamp: float = -1.0,
        reduction: str = "mean",
        fused_log_softmax: bool = True,
    ) -> None:
        super().__init__()
        self.blank = blank
        self.clamp = clamp
        self.reduction = reduction
        self.fused_log_softmax = fused_log_softmax

    def forward(
        self,
        logits: torch.Tensor,
        targets: torch.Tensor,
        logit_lengths: torch.Tensor,
        target_lengths: torch.Tensor,
    ) -> torch.Tensor:
        return rnnt_loss(
            logits,
            targets,
            logit_lengths,
            target_lengths,
            self.blank,
            self.clamp,
            self.reduction,
            self.fused_log_softmax,
        )


# Shapes, for tracers.


@torch.library.register_fake("trireme::_transducer_joint")
def _(
    f: torch.Tensor,
    g: torch.Tensor,
    num_frames: torch.Tensor,
    num_labels: torch.Tensor,
    drop_probability: float,
    is_packed: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    grid = (f.shape[0], f.shape[1], g.shape[1])
    mask_bytes = (f.shape[2] + 127) // 128 * 16
    if is_packed:
        rows = torch.library.get_ctx().new_dynamic_size()
        out = f.new_empty((rows, f.shape[2]))
    else:
        rows = grid[0] * grid[1] * grid[2]
        out = f.new_empty((*grid, f.shape[2]))
    return out, f.new_empty((rows, mask_bytes), dtype=torch.uint8)


@torch.library.register_fake("trireme::_transducer_joint_backward")
def _(
    dout: torch.Tensor,
    num_frames: torch.Tensor,
    num_labels: torch.Tensor,
    mask: torch.Tensor,
    f_shape: list[int],
    g_shape: list[int],
    drop_probability: float,
    is_packed: bool,
) -> tuple[torch.Tensor, torch.Tensor]:
    return dout.new_empty(f_shape), dout.new_empty(g_shape)


@torch.library.register_fake("trireme::_transducer_loss")
def _(
    logits: torch.Tensor,
    labels: torch.Tensor,
    num_frames: torch.Tensor,
    num_labels: torch.Tensor,
    blank: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    samples, positions = labels.shape[0], labels.shape[1] + 1
    rows = logits.shape[0]
    if logits.dim() == 4:
        rows = rows * logits.shape[1] * logits.shape[2]
    cells = rows + samples * (positions - 1) * positions
    workspace_bytes = 20 * cells + samples * 16 * (positions + 2)
    return (
        logits.new_empty((samples,), dtype=torch.float32),
        logits.new_empty((workspace_bytes,), dtype=torch.uint8),
    )


@torch.library.register_fake("trireme::_transducer_loss_backward")
def _(
    dloss: torch.Tensor,
    logits: torch.Tensor,
    labels: torch.Tensor,
    num_frames: torch.Tensor,
    num_labels: torch.Tensor,
    workspace: torch.Tensor,
    blank: int,
) -> torch.Tensor:
    return torch.empty_like(logits, memory_format=torch.contiguous_format)
