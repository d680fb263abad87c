"""torch.distributed.pipelining at its best: every schedule and every cut by hand is tried, the fastest stays."""

import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.pipelining import PipelineStage, schedules

from pipeline_models import BATCH, MICROBATCH, Workload

# Schedules, and how many stages each rank has.
SCHEDULES: dict[str, tuple[type, int]] = {
    "GPipe": (schedules.ScheduleGPipe, 1),
    "1F1B": (schedules.Schedule1F1B, 1),
    "Interleaved1F1B": (schedules.ScheduleInterleaved1F1B, 2),
    "InterleavedZeroBubble": (schedules.ScheduleInterleavedZeroBubble, 2),
    "ZBVZeroBubble": (schedules.ScheduleZBVZeroBubble, 2),
}


@dataclass
class Choice:
    schedule: str
    cuts: tuple[int, ...]  # parts before each stage but the first

    def __str__(self) -> str:
        return f"{self.schedule} cut at {', '.join(map(str, self.cuts))}"


class Pipeline:
    """Two ranks; a step returns its mean loss on the rank that has it."""

    def __init__(self, workload: Workload, choice: Choice) -> None:
        self.workload = workload
        self.choice = choice
        kind, per_rank = SCHEDULES[choice.schedule]
        parts = workload.parts(workload.make())
        bounds = [0, *choice.cuts, len(parts)]
        modules = [nn.Sequential(*parts[a:b]) for a, b in itertools.pairwise(bounds)]
        mine = _stages_of(dist.get_rank(), len(modules), choice.schedule)
        stages = [PipelineStage(modules[s], s, len(modules), torch.device("cpu")) for s in mine]
        self.schedule = kind(
            stages if per_rank > 1 else stages[0], BATCH // MICROBATCH, loss_fn=workload.loss
        )
        self.is_first, self.is_last = 0 in mine, len(modules) - 1 in mine
        parameters = [p for s in mine for p in modules[s].parameters()]
        self.optimizer = workload.make_optimizer(parameters)

    def step(self) -> float | None:
        losses: list[Tensor] = []
        inputs = (self.workload.x,) if self.is_first else ()
        if self.is_last:
            self.schedule.step(*inputs, target=self.workload.y, losses=losses)
        else:
            self.schedule.step(*inputs)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return torch.stack(losses).mean().item() if losses else None


def _stages_of(rank: int, num_stages: int, schedule: str) -> list[int]:
    if num_stages == 2:
        return [rank]
    return [rank, 3 - rank] if schedule.startswith("ZBV") else [rank, 2 + rank]


def best(workload: Workload) -> Pipeline:
    """The fastest: of cuts about the middle by 1F1B, then of schedules; three steps each."""
    num_parts = len(workload.parts(workload.make()))
    cuts = [(c,) for c in range(num_parts // 2 - 2, num_parts // 2 + 3)]
    tried = {Choice("1F1B", cut).cuts: _seconds(workload, Choice("1F1B", cut)) for cut in cuts}
    middle = min(tried, key=lambda cut: tried[cut])[0]
    choices = [
        Choice(name, (middle,) if per_rank == 1 else cut)
        for name, (_, per_rank) in SCHEDULES.items()
        for cut in ([(0,)] if per_rank == 1 else _quarters(middle, num_parts))
    ]
    seconds = [_seconds(workload, choice) for choice in choices]
    return Pipeline(workload, choices[seconds.index(min(seconds))])


def _quarters(middle: int, num_parts: int) -> list[tuple[int, ...]]:
    """Cuts in four around a good cut in two."""
    first, last = middle // 2, (middle + num_parts) // 2
    return [(first, middle, last), (first + 1, middle, last - 1)]


def _seconds(workload: Workload, choice: Choice) -> float:
    """Of the slowest rank, the best of two steps after the first."""
    pipeline = Pipeline(workload, choice)
    pipeline.step()
    return min(slowest(pipeline.step) for _ in range(2))


def slowest(call: Callable[[], object]) -> float:
    """Seconds of a call on the rank that takes longest."""
    dist.barrier()
    start = time.perf_counter()
    call()
    seconds = torch.tensor(time.perf_counter() - start, dtype=torch.float64)
    dist.all_reduce(seconds, dist.ReduceOp.MAX)
    return seconds.item()
