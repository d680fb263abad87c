"""Makes transducer.safetensors: losses and gradients by torchaudio's rnnt_loss.

torchaudio's last release with it, 2.11, needs a torch of its own version, so this runs once, in an
environment of its own: pip install torch==2.11.0 torchaudio==2.11.0 numpy safetensors
"""

from __future__ import annotations

from pathlib import Path

import safetensors.torch
import torch
import torchaudio

# samples, frames, labels, vocabulary, blank
CASES = [(3, 6, 4, 7, 0), (2, 12, 8, 29, 28), (4, 3, 7, 5, 2), (1, 30, 10, 12, 0)]


def make(
    samples: int, frames: int, labels: int, vocabulary: int, blank: int
) -> dict[str, torch.Tensor]:
    logits = 2 * torch.randn(samples, frames, labels + 1, vocabulary)
    logits.requires_grad_()
    targets = torch.randint(0, vocabulary - 1, (samples, labels), dtype=torch.int32)
    targets += (targets >= blank).int()
    num_frames = torch.randint(1, frames + 1, (samples,), dtype=torch.int32)
    num_labels = torch.randint(0, labels + 1, (samples,), dtype=torch.int32)
    num_frames[0], num_labels[-1] = frames, labels  # it wants tensors without spare room
    scale = torch.randn(samples)
    loss = torchaudio.functional.rnnt_loss(
        logits, targets, num_frames, num_labels, blank=blank, reduction="none"
    )
    (loss * scale).sum().backward()
    assert logits.grad is not None
    return {
        "logits": logits.detach(),
        "labels": targets,
        "num_frames": num_frames,
        "num_labels": num_labels,
        "blank": torch.tensor([blank]),
        "loss_gradient": scale,
        "loss": loss.detach(),
        "gradient": logits.grad,
    }


def main() -> None:
    torch.manual_seed(1)
    tensors = {
        f"{i}.{name}": tensor
        for i, case in enumerate(CASES)
        for name, tensor in make(*case).items()
    }
    made_by = {"made_by": f"torchaudio {torchaudio.__version__}, torch {torch.__version__}"}
    safetensors.torch.save_file(
        tensors, Path(__file__).with_name("transducer.safetensors"), made_by
    )


if __name__ == "__main__":
    main()
