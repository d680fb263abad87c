"""Models from Python over two ranks: Trireme beside torch.distributed.pipelining, and beside its own engine.

All train in the same two processes, in turn, on the same batches from the same weights; losses are compared. Of
torch.distributed.pipelining the best hand cut and schedule.
"""

import argparse
import os
import statistics
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

import pipeline_models as models
import trireme
from pipeline_models import BATCH, MICROBATCH, Workload
from torch_pipeline import best, slowest

TOLERANCE = 1e-4  # of losses, relative: Adam enlarges what orders of sums make different


def session_of(workload: Workload, **options: int) -> trireme.Session:
    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return workload.loss(workload.output(model, batch["x"]), batch["y"])

    return trireme.Session(
        workload.make(),
        loss,
        {"x": workload.x, "y": workload.y},
        batch_size=BATCH,
        microbatch_size=MICROBATCH,
        shuffled=False,
        optimizer="adamw",
        learning_rate=1e-4,
        weight_decay=0.0,
        **options,
    )


def own_loop(workload: Workload) -> Callable[[], float]:
    """The step of a loop of one's own, with torch's optimizer."""
    model = trireme.DistributedModel(workload.make())
    optimizer = trireme.DistributedOptimizer(
        torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0, fused=True)
    )

    @trireme.step
    def train_step(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
        loss = workload.loss(workload.output(model, x), y)
        model.backward(loss)
        return loss

    def step() -> float:
        optimizer.zero_grad()
        loss = train_step(model, workload.x, workload.y).reduce_mean().item()
        optimizer.step()
        return loss

    return step


def compare(name: str, num_rounds: int) -> None:
    """Steps of all contenders in turn."""
    workload = models.make(name)
    peer = best(workload)
    two_stages, free = session_of(workload, stages=2), session_of(workload)
    steps: dict[str, Callable[[], float | None]] = {
        "peer": peer.step,
        "two stages": lambda: two_stages.step().loss,
        "own choice": lambda: free.step().loss,
        "own loop": own_loop(workload),
    }
    losses: dict[str, list[float | None]] = {contender: [] for contender in steps}
    seconds: dict[str, list[float]] = {contender: [] for contender in steps}
    for turn in range(num_rounds):
        order = list(steps)
        for contender in order if turn % 2 == 0 else reversed(order):
            step = steps[contender]
            seconds[contender].append(slowest(lambda: losses[contender].append(step())))  # noqa: B023
    _check(losses)
    if dist.get_rank() == 0:
        _print(name, str(peer.choice), free.plan, seconds)
    two_stages.close()
    free.close()


def _check(losses: dict[str, list[float | None]]) -> None:
    """Every rank: what it has of the losses is the same by all contenders."""
    ours = losses["two stages"]
    for contender, values in losses.items():
        for step, (value, expected) in enumerate(zip(values, ours, strict=True)):
            if value is not None and expected is not None:
                assert abs(value - expected) <= TOLERANCE * abs(expected), (
                    f"step {step}: {contender} has loss {value}, two stages {expected}"
                )


def _print(name: str, choice: str, plan: trireme.Plan, seconds: dict[str, list[float]]) -> None:
    medians = {key: statistics.median(values[2:]) for key, values in seconds.items()}
    fields = "".join(
        f"  {medians[key] * 1e3:8.0f} ({medians['peer'] / medians[key]:.2f})"
        for key in ("two stages", "own choice", "own loop")
    )
    print(f"{name:9}  {medians['peer'] * 1e3:6.0f}{fields}  peer: {choice}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(models.NAMES), choices=models.NAMES)
    parser.add_argument("--rounds", type=int, default=12)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    trireme.init({"pipeline_parallel_degree": 2, "microbatches": BATCH // MICROBATCH})
    if dist.get_rank() == 0:
        print(f"torch {torch.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        print("ms of a step, medians; in brackets how many times as fast as the peer")
        print("model        peer        two stages      own choice        own loop", flush=True)
    for name in arguments.models:
        compare(name, arguments.rounds)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
