"""The transducer's loss and joint, judged by torchaudio (golden values) and by torch's autograd."""

from __future__ import annotations

import unittest
from pathlib import Path
from typing import Any

import judging

judging.require("numpy", "torch", "safetensors")

import numpy as np  # noqa: E402
import safetensors.numpy  # noqa: E402
import torch  # noqa: E402

GOLDEN = Path(__file__).parent / "golden" / "transducer.safetensors"
GRID = ("num_frames", "num_labels")
Case = dict[str, Any]


def grid_mask(case: Case, frames: int, positions: int) -> np.ndarray:
    """[B, T, U]: which rows are no padding."""
    in_frames = np.arange(frames) < case["num_frames"][:, None]
    in_positions = np.arange(positions) <= case["num_labels"][:, None]
    mask: np.ndarray = in_frames[:, :, None] & in_positions[:, None, :]
    return mask


def exact_loss(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """Losses and gradients by torch in f64, cell by cell."""
    logits = torch.from_numpy(case["logits"].astype(np.float64)).requires_grad_()
    log_p = logits.log_softmax(-1)
    losses = []
    for b, (frames, labels) in enumerate(zip(*(case[name] for name in GRID), strict=True)):
        alpha: dict[tuple[int, int], torch.Tensor] = {}
        for t in range(frames):
            for u in range(labels + 1):
                ways = []
                if t > 0:
                    ways.append(alpha[t - 1, u] + log_p[b, t - 1, u, case["blank"]])
                if u > 0:
                    ways.append(alpha[t, u - 1] + log_p[b, t, u - 1, case["labels"][b, u - 1]])
                start = torch.zeros((), dtype=torch.float64)
                alpha[t, u] = torch.stack(ways).logsumexp(0) if ways else start
        losses.append(-alpha[frames - 1, labels] - log_p[b, frames - 1, labels, case["blank"]])
    loss = torch.stack(losses)
    loss.backward(torch.from_numpy(case["loss_gradient"].astype(np.float64)))
    assert logits.grad is not None
    return loss.detach().numpy(), logits.grad.numpy()


def random_case(
    random: np.random.Generator, samples: int, frames: int, labels: int, vocabulary: int
) -> Case:
    blank = int(random.integers(vocabulary))
    targets = random.integers(vocabulary - 1, size=(samples, labels))
    shape = (samples, frames, labels + 1, vocabulary)
    return {
        "logits": random.normal(scale=2, size=shape).astype(np.float32),
        "labels": (targets + (targets >= blank)).astype(np.int32),
        "num_frames": random.integers(1, frames + 1, samples).astype(np.int32),
        "num_labels": random.integers(labels + 1, size=samples).astype(np.int32),
        "loss_gradient": random.normal(size=samples).astype(np.float32),
        "blank": blank,
    }


def our_loss(case: Case, packed: bool) -> dict[str, np.ndarray]:
    tensors = {name: array for name, array in case.items() if isinstance(array, np.ndarray)}
    mask = grid_mask(case, *case["logits"].shape[1:3])
    if packed:
        tensors["logits"] = case["logits"][mask]
    made = judging.call(
        "transducer_loss",
        tensors,
        blank=case["blank"],
        packed=int(packed),
        max_frames=case["logits"].shape[1],
    )
    if packed:
        gradient = np.zeros_like(case["logits"])
        gradient[mask] = made["gradient"]
        made["gradient"] = gradient
    return made


class TransducerLoss(unittest.TestCase):
    def check(self, case: Case, loss: np.ndarray, gradient: np.ndarray, tolerance: float) -> None:
        for packed in (False, True):
            ours = our_loss(case, packed)
            np.testing.assert_allclose(ours["loss"], loss, rtol=tolerance, atol=tolerance)
            np.testing.assert_allclose(ours["gradient"], gradient, rtol=0, atol=tolerance)

    def test_torchaudio(self) -> None:
        golden = safetensors.numpy.load_file(GOLDEN)
        for i in sorted({name.split(".")[0] for name in golden}):
            case: Case = {
                name.split(".")[1]: array
                for name, array in golden.items()
                if name.startswith(f"{i}.")
            }
            case["blank"] = int(case["blank"][0])
            loss, gradient = case.pop("loss"), case.pop("gradient")
            self.check(case, loss, gradient, 1e-4)  # its alphas are f32

    def test_torch(self) -> None:
        random = np.random.default_rng(1)
        for shape in [(3, 9, 5, 33), (2, 4, 12, 6), (1, 40, 12, 100), (2, 1, 1, 2)]:
            case = random_case(random, *shape)
            loss, gradient = exact_loss(case)
            self.check(case, loss, gradient, 2e-6)

    def test_names_the_sample(self) -> None:
        case = random_case(np.random.default_rng(2), 3, 4, 2, 5)
        case["num_frames"][1] = 5
        with self.assertRaisesRegex(judging.RefusedError, "sample 1 has 5 frames"):
            our_loss(case, packed=False)


class Joint(unittest.TestCase):
    def test_torch(self) -> None:
        random = np.random.default_rng(3)
        for samples, frames, labels, width in [(2, 5, 3, 40), (3, 4, 2, 129)]:
            case: Case = {
                "f": random.normal(size=(samples, frames, width)).astype(np.float32),
                "g": random.normal(size=(samples, labels + 1, width)).astype(np.float32),
                "num_frames": random.integers(1, frames + 1, samples).astype(np.int32),
                "num_labels": random.integers(labels + 1, size=samples).astype(np.int32),
            }
            mask = grid_mask(case, frames, labels + 1)
            shape = (samples, frames, labels + 1, width)
            dout = random.normal(size=shape).astype(np.float32) * mask[..., None]
            f, g = (torch.from_numpy(case[name]).requires_grad_() for name in "fg")
            out = (f[:, :, None] + g[:, None]).relu() * torch.from_numpy(mask)[..., None]
            out.backward(torch.from_numpy(dout))
            ours = judging.call("joint", case | {"dout": dout})
            np.testing.assert_array_equal(ours["out"], out.detach().numpy())
            for name, judge in (("df", f.grad), ("dg", g.grad)):
                assert judge is not None
                np.testing.assert_allclose(ours[name], judge.numpy(), rtol=1e-5, atol=1e-6)


if __name__ == "__main__":
    judging.main()
