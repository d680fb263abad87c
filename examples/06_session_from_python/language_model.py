"""Trains a transformer on two ranks that it starts itself: python language_model.py FOLDER."""

import sys
from pathlib import Path

import torch
from torch import Tensor, nn

import trireme

VOCABULARY, LENGTH, WIDTH = 64, 32, 64


class LanguageModel(nn.Module):
    """Predicts the next token; knows nothing of ranks."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.1, batch_first=True)
        self.body = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
        self.output = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(tokens.shape[1])
        return self.output(self.body(self.embedding(tokens), mask=mask))


def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
    scores = model(batch["tokens"][:, :-1])
    return nn.functional.cross_entropy(scores.flatten(0, 1), batch["tokens"][:, 1:].flatten())


def samples(count: int) -> dict[str, Tensor]:
    """Each token says what the next one is: 5 x + 3."""
    tokens = [torch.randint(0, VOCABULARY, (count,))]
    for _ in range(LENGTH):
        tokens.append((5 * tokens[-1] + 3) % VOCABULARY)
    return {"tokens": torch.stack(tokens, 1)}


def main(folder: Path) -> None:
    torch.manual_seed(0)
    session = trireme.Session(
        LanguageModel(),
        loss,
        samples(1024),
        evaluation=samples(64),
        ranks=2,
        steps=60,
        batch_size=32,
        microbatch_size=4,
        learning_rate=3e-3,
        folder=str(folder / "run"),
        evaluate_every=20,
    )
    for report in session:
        if session.rank == 0 and report.step % 20 == 0:
            print(f"step {report.step} loss {report.loss:.4f}", flush=True)
    end = session.finish()
    session.save_timeline(folder / "timeline.json")
    session.save_weights(folder / "weights.safetensors")
    if session.rank == 0 and end.evaluation is not None:
        print(f"evaluated {end.evaluation.total:.4f}, checkpoint {end.checkpoint}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
