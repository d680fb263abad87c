"""Models from Python over two ranks: Trireme beside torch.distributed.pipelining, and beside its own engine.

All train in the same two processes, in turn, on the same batches from the same weights; losses are compared. Of
torch.distributed.pipelining the best hand cut and schedule.
"""

import argparse
import itertools
import os
import statistics
import time
from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

import pipeline_models as models
import trireme
from pipeline_models import BATCH, MICROBATCH, Workload
from torch_pipeline import best, slowest

# Of losses, relative: of the first two steps, and of those after, where orders of sums have grown.
TOLERANCES = (1e-4, 5e-2)


def parts_of(workload: Workload) -> tuple[nn.Module, Callable[..., Tensor], dict[str, Tensor]]:
    """Model, loss and data, as Session, record and profile want them."""

    def loss(model: nn.Module, batch: dict[str, Tensor]) -> Tensor:
        return workload.loss(workload.output(model, batch["x"]), batch["y"])

    return workload.make(), loss, {"x": workload.x, "y": workload.y}


def session_of(workload: Workload, **options: int | str | trireme.Plan) -> trireme.Session:
    return trireme.Session(
        *parts_of(workload),
        batch_size=len(workload.x),
        microbatch_size=MICROBATCH,
        shuffled=False,
        optimizer=workload.optimizer,
        learning_rate=models.LEARNING_RATE,
        momentum=0.0,
        weight_decay=0.0,
        **options,
    )


def own_loop(workload: Workload) -> Callable[[], float]:
    """The step of a loop of one's own, with torch's optimizer."""
    model = trireme.DistributedModel(workload.make())
    optimizer = trireme.DistributedOptimizer(workload.make_optimizer(model.parameters()))

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
                assert abs(value - expected) <= TOLERANCES[step > 1] * abs(expected), (
                    f"step {step}: {contender} has loss {value}, two stages {expected}"
                )


def _print(name: str, choice: str, plan: trireme.Plan, seconds: dict[str, list[float]]) -> None:
    medians = {key: statistics.median(values[2:]) for key, values in seconds.items()}
    fields = "".join(
        f"  {medians[key] * 1e3:8.0f} ({medians['peer'] / medians[key]:.2f})"
        for key in ("two stages", "own choice", "own loop")
    )
    print(f"{name:9}  {medians['peer'] * 1e3:6.0f}{fields}  peer: {choice}", flush=True)


def engine_ms(session: trireme.Session) -> float:
    """Median step of the engine's own loop: no Python between its steps."""
    return session.run().measured.median_step_ms


def iterated_ms(session: trireme.Session) -> float:
    """Median step of a loop in Python, from one report to the next."""
    ends = [time.perf_counter()]
    for report in session:
        assert report.loss > 0
        ends.append(time.perf_counter())
    session.finish()
    return statistics.median(b - a for a, b in itertools.pairwise(ends)) * 1e3


def compare_edges(name: str, num_rounds: int) -> None:
    """A training by the engine's loop and one by Python's, in turn."""
    workload = models.make(name)
    ways = {"engine": engine_ms, "Python": iterated_ms}
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(3):
        for way, run in ways.items():
            session = session_of(workload, steps=num_rounds, stages=2)
            found[way].append(run(session))
            session.close()
    if dist.get_rank() == 0:
        engine, python = (statistics.median(found[way]) for way in ways)
        print(f"{name:9}  {engine:6.1f}  {python:6.1f}  {engine / python:5.3f}", flush=True)


# Schedules with their stages, over two ranks.
SCHEDULES = (
    *(("interleaved", 2), ("zero_bubble", 2), ("zero_bubble_h2", 2)),
    *(("zero_bubble", 4), ("v_half", 4)),
)


def compare_schedules(name: str, num_rounds: int, num_microbatches: int) -> None:
    """Two ranks by each schedule, in turn; all losses have the same bits."""
    workload = models.make(name, num_microbatches * MICROBATCH)
    graph = trireme.record(*parts_of(workload), microbatch_size=MICROBATCH)
    costs = trireme.profile(*parts_of(workload), microbatch_size=MICROBATCH)
    sessions = {}
    for schedule, stages in SCHEDULES:
        plan = trireme.plan(
            graph, costs, batch_size=len(workload.x), microbatch_size=MICROBATCH,
            stages=stages, stages_per_rank=stages // 2, schedule=schedule,
        )  # fmt: skip
        sessions[f"{schedule} {stages}"] = session_of(workload, plan=plan)
    reports: dict[str, list[trireme.StepReport]] = {way: [] for way in sessions}
    seconds: dict[str, list[float]] = {way: [] for way in sessions}
    for turn in range(num_rounds):
        order = list(sessions)
        for way in order if turn % 2 == 0 else reversed(order):
            step, found = sessions[way].step, reports[way]
            seconds[way].append(slowest(lambda: found.append(step())))  # noqa: B023
    losses = {way: [report.loss for report in found] for way, found in reports.items()}
    assert all(found == losses["interleaved 2"] for found in losses.values())
    first = statistics.median(seconds["interleaved 2"][2:])
    for way, session in sessions.items():
        expected = trireme.simulate(session.plan, session.graph, costs)
        took = statistics.median(seconds[way][2:])
        at_work = statistics.median(_at_work(reports[way], seconds[way])[2:])
        at_best = sum(expected.busy_ms) / 2 / expected.lower_bound_ms
        if dist.get_rank() == 0:
            print(
                f"{name:9}{way:16}{took * 1e3:6.0f}{expected.step_ms:10.0f}{first / took:7.3f}"
                f"{at_work:11.3f}{at_best:9.3f}{at_work / at_best:8.3f}",
                flush=True,
            )
        session.close()


def _at_work(reports: list[trireme.StepReport], seconds: list[float]) -> list[float]:
    """By step, which part of it the two ranks' processors were in forwards and backwards, on average."""
    busy = torch.tensor([report.compute_seconds for report in reports], dtype=torch.float64)
    dist.all_reduce(busy)
    return (busy / 2 / torch.tensor(seconds, dtype=torch.float64)).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="+", default=list(models.NAMES), choices=models.NAMES)
    parser.add_argument("--rounds", type=int, default=12)
    parser.add_argument("--edges", action="store_true", help="beside the engine's own loop")
    parser.add_argument("--schedules", action="store_true", help="schedules beside each other")
    parser.add_argument("--microbatches", type=int, default=8, help="of --schedules")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    trireme.init({"pipeline_parallel_degree": 2, "microbatches": BATCH // MICROBATCH})
    if dist.get_rank() == 0:
        print(f"torch {torch.__version__}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")
        print("ms of a step, medians; in brackets how many times as fast as the peer")
        heading = "model        peer        two stages      own choice        own loop"
        if arguments.schedules:
            heading = "model    schedule, stages  ms predicted  ratio    at work  at best"
        elif arguments.edges:
            heading = "model      engine  Python  ratio"
        print(heading, flush=True)
    for name in arguments.models:
        if arguments.schedules:
            compare_schedules(name, arguments.rounds, arguments.microbatches)
        else:
            (compare_edges if arguments.edges else compare)(name, arguments.rounds)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
