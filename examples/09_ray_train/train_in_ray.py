"""Trains a transformer in the workers of a Ray Train run: python train_in_ray.py FOLDER [WORKERS [STEPS]]."""

import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ray
import ray.train
import torch
from ray.train.collective import broadcast_from_rank_zero
from ray.train.torch import TorchTrainer
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


def meeting_place() -> dict[str, str]:
    """Where this worker, as rank 0, serves the others, and the secret that they join with: a new one each start."""
    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    return {
        "TRIREME_STORE": f"{ray.util.get_node_ip_address()}:{port}",
        "TRIREME_TOKEN": secrets.token_hex(32),
    }


@contextmanager
def ranks_of_ray() -> Iterator[None]:
    """Within, this worker is the rank that Ray has numbered it as, by RANK and WORLD_SIZE."""
    is_first = ray.train.get_context().get_world_rank() == 0
    os.environ |= broadcast_from_rank_zero(meeting_place() if is_first else None)
    world = trireme.init()
    try:
        yield
    except Exception as failure:
        world.fail(f"{type(failure).__name__}: {failure}")  # the others end with this reason
        raise
    trireme.shutdown()


def train(config: dict[str, Any]) -> None:
    """What each worker runs."""
    folder = Path(config["folder"])
    (folder / "trained").mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    with ranks_of_ray():
        session = trireme.Session(
            LanguageModel(),
            loss,
            samples(1024),
            evaluation=samples(64),
            steps=config["steps"],
            batch_size=32,
            microbatch_size=4,
            learning_rate=3e-3,
            folder=str(folder / "run"),
            resume=True,
            checkpoint_every=20,
        )
        for report in session:
            if session.next_step % 20 == 0:
                ray.train.report({"step": report.step, "loss": report.loss})
        evaluation = session.finish().evaluation
        session.save_weights(folder / "trained" / "weights.safetensors")
        tell_ray(session.rank, evaluation.total if evaluation else None, folder / "trained")


def tell_ray(rank: int, loss: float | None, trained: Path) -> None:
    """Each worker reports as often as the others; rank 0 what Ray is to keep."""
    kept = ray.train.Checkpoint.from_directory(str(trained)) if rank == 0 else None
    ray.train.report({"evaluation loss": loss}, checkpoint=kept)


def main(folder: Path, workers: int = 2, steps: int = 60) -> None:
    trainer = TorchTrainer(
        train,
        train_loop_config={"folder": str(folder), "steps": steps},
        scaling_config=ray.train.ScalingConfig(num_workers=workers),
        run_config=ray.train.RunConfig(
            storage_path=str(folder / "ray"),
            failure_config=ray.train.FailureConfig(max_failures=3),
        ),
    )
    result = trainer.fit()
    print(result.metrics, result.checkpoint)


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), *map(int, sys.argv[2:]))
