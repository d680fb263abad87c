"""The steps of planning one by one, each to a value with a file form: record, profile, plan, simulate, verify."""

import copy
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from trireme import _core, ranks
from trireme._core import (
    ChangedSteps,
    Front,
    Graph,
    Plan,
    Profile,
    SimulatedStep,
    Topology,
    Verification,
)
from trireme.data import Samples, to_source
from trireme.errors import Error
from trireme.modules import LossFunction, to_model
from trireme.session import to_options

_OBJECTIVES = {
    "speed": _core.Objective.SPEED,
    "memory": _core.Objective.MEMORY,
    "cost": _core.Objective.COST,
}


def record(
    model: torch.nn.Module,
    loss: LossFunction | None = None,
    data: Samples | None = None,
    *,
    microbatch_size: int = 8,
    training: bool = True,
) -> Graph:
    """The forward pass with its loss as a graph of operators. Arguments as of Session; the model stays as it is."""
    return _core.record_graph(_maker(model, loss, data), microbatch_size, training)


def profile(
    model: torch.nn.Module,
    loss: LossFunction | None = None,
    data: Samples | None = None,
    *,
    microbatch_size: int = 8,
    device_memory_bytes: int = 0,
    **options: Any,
) -> tuple[Profile, Topology]:
    """What the graph's nodes and the links between the ranks cost here. Every rank calls it, and gets the same.

    device_memory_bytes   of each rank; 0: what the machine has.
    options               threads, optimizer, ... as of Session.
    """
    given = to_options("even", _core.BatchLayout(microbatch_size, microbatch_size), None, options)
    return _core.measure_model(
        ranks.init(),
        _maker(model, loss, data),
        microbatch_size,
        given.training,
        device_memory_bytes,
        given.planning.threads,
    )


def plan(
    graph: Graph,
    costs: tuple[Profile, Topology] | None = None,
    *,
    batch_size: int = 32,
    microbatch_size: int = 8,
    lanes: int = 1,
    objective: str = "speed",
    **options: Any,
) -> Plan:
    """The best plan by measured costs, or without them stages of about as many operators each.

    objective   speed: least step; memory: least peak; cost: least ranks x step, for which ranks may stay idle.
    options     stages, replicas, schedule, cuts, device_memory_bytes, ... as of Session.
    """
    batch = _core.BatchLayout(batch_size, microbatch_size, lanes)
    if objective not in _OBJECTIVES:
        raise ValueError(f"objective is one of {', '.join(_OBJECTIVES)}, not {objective!r}")
    given = to_options("even", batch, None, options)
    given.planning.objective = _OBJECTIVES[objective]
    if costs is None:
        return _core.make_plan(graph, given.planning)
    return _core.best_plan(graph, *costs, given.planning, given.training)[0]


def plan_front(
    graph: Graph,
    costs: tuple[Profile, Topology],
    *,
    batch_size: int = 32,
    microbatch_size: int = 8,
    lanes: int = 1,
    **options: Any,
) -> Front:
    """The plans of which none is beaten by another in both step and peak, the fastest first.

    options   as of Session: what they fix is kept, the rest is varied.
    """
    batch = _core.BatchLayout(batch_size, microbatch_size, lanes)
    given = to_options("even", batch, None, options)
    return _core.make_front(graph, *costs, given.planning, given.training)


def explain(
    plan: Plan,
    graph: Graph,
    costs: tuple[Profile, Topology],
    *,
    timeline: str | Path = "",
    **options: Any,
) -> ChangedSteps:
    """What would make the plan's steps faster: a step played again with one thing changed, the fastest first.

    timeline   a file that a run or Session.save_timeline wrote: actions take what they took there.
    """
    training = to_options("even", plan.batch, None, options).training
    return _core.explain_step(plan, graph, *costs, training, str(timeline))


def simulate(
    plan: Plan, graph: Graph, costs: tuple[Profile, Topology], **options: Any
) -> SimulatedStep:
    """A step of the plan, played through: its time, each rank's memory, a timeline."""
    training = to_options("even", plan.batch, None, options).training
    return _core.simulate_step(plan, graph, *costs, training)


def timeline_figure(step: SimulatedStep | str | Path) -> Any:
    """A row a rank, as a figure of plotly, which a notebook shows: of a simulated step, or of a file that
    `Session.save_timeline` wrote (predicted above measured). Needs plotly (`pip install trireme[report]`)."""
    from trireme.report.fields import Notes
    from trireme.report.figures.timeline import draw
    from trireme.report.timelines import read_timelines

    if isinstance(step, SimulatedStep):
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(step.timeline)
            file.flush()
            return draw(read_timelines(Path(file.name), Notes()))
    return draw([one for one in read_timelines(Path(step), Notes()) if one.events])


def verify(
    model: torch.nn.Module,
    loss: LossFunction | None,
    data: Samples,
    *,
    plan: Plan | str = "even",
    batch_size: int = 32,
    microbatch_size: int = 8,
    lanes: int = 1,
    steps: int = 3,
    precision: str = "f32",
    **options: Any,
) -> Verification:
    """Trains some steps by a plan and compares losses, gradients, weights and buffers with the uncut model and with a
    plain torch loop; with several ranks also theirs with one process. Raises Error, naming the first difference, where
    a comparison does not pass. The model stays as it is. Every rank calls it.

    options   stages, replicas, optimizer, learning_rate, seed, ... as of Session.
    Cost      four trainings of so many steps, each of a copy of the model.
    """
    source, form = to_source(data)
    batch = _core.BatchLayout(batch_size, microbatch_size, lanes)
    given = to_options("even" if plan == "auto" else plan, batch, None, options)

    def make() -> _core.Workload:
        core = to_model(copy.deepcopy(model), loss, form, {}, precision)
        return _core.Workload(core, source, None)

    found = _core.verify_training(ranks.init(), make, steps, given.training.seed, given)
    for comparison in found.comparisons:
        if not comparison.passes:
            raise Error(f"against {comparison.against}: {comparison.first_difference}")
    return found


def _maker(
    model: torch.nn.Module, loss: LossFunction | None, data: Samples | None
) -> Callable[[], _core.Workload]:
    if data is None:
        raise TypeError("give data: tensors by name, or a map-style data set")
    source, form = to_source(data)
    core = to_model(model, loss, form, {})
    return lambda: _core.Workload(core, source, None)
