"""record, profile, plan, simulate, verify: planning step by step, with its files."""

from pathlib import Path

import pytest
import torch
from torch import nn

import models
import trireme


def test_each_step_of_planning_has_a_file(tmp_path: Path) -> None:
    case = models.case("transformer")
    model = case.make()
    graph = trireme.record(model, case.loss, case.data, microbatch_size=4)
    graph.save(tmp_path / "graph.json")
    graph = trireme.Graph.load(tmp_path / "graph.json")
    assert "embedding.weight" in graph.parameter_names

    profile, topology = trireme.profile(model, case.loss, case.data, microbatch_size=4)
    assert profile.graph_sha256 == graph.sha256
    assert profile.forward_ms > 0
    assert topology.num_ranks == 1
    profile.save(tmp_path / "profile.json")
    costs = (trireme.Profile.load(tmp_path / "profile.json", graph), topology)

    plan = trireme.plan(graph, costs, batch_size=16, microbatch_size=4)
    assert (plan.num_stages, plan.num_replicas) == (1, 1)
    assert plan.prediction is not None
    step = trireme.simulate(plan, graph, costs)
    assert step.step_ms >= step.lower_bound_ms > 0
    assert "traceEvents" in step.timeline

    changed = trireme.explain(plan, graph, costs)
    assert changed.now.step_ms == pytest.approx(step.step_ms)
    samples = [one.us_per_sample for one in changed.changes]
    assert samples == sorted(samples)
    assert "updates in no time" in changed.text
    front = trireme.plan_front(graph, costs, batch_size=16, microbatch_size=4)
    steps = [one.prediction.step_ms for one in front.plans if one.prediction is not None]
    assert steps
    assert steps == sorted(steps)
    cheap = trireme.plan(graph, costs, batch_size=16, microbatch_size=4, objective="cost")
    assert cheap.num_ranks == 1
    with pytest.raises(ValueError, match="objective is one of"):
        trireme.plan(graph, costs, batch_size=16, microbatch_size=4, objective="time")

    small = trireme.plan(
        graph, costs, batch_size=16, microbatch_size=4, balance="uniform", active_microbatches=1
    )
    assert "active_microbatches 1, cuts by balance uniform" in small.show(graph)
    with pytest.raises(trireme.Error, match="'nowhere' means no node and no module; there are"):
        trireme.plan(graph, costs, batch_size=16, microbatch_size=4, stage_of={"nowhere": 0})

    figure = trireme.timeline_figure(step)
    assert {trace.name for trace in figure.data} >= {"forward", "backward"}

    even = trireme.plan(graph, batch_size=16, microbatch_size=4, stages=3)
    even.save(tmp_path / "plan.json")
    assert trireme.Plan.load(tmp_path / "plan.json", graph).num_stages == 3
    assert "stage" in even.show(graph)


def test_stages_are_verified_against_the_plain_model() -> None:
    case = models.case("transformer")
    model = case.make()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = trireme.verify(
        model, case.loss, case.data, stages=3, batch_size=16, microbatch_size=4, optimizer="sgd"
    )
    assert found.passes
    assert [comparison.against for comparison in found.comparisons] == ["uncut", "plain loop"]
    assert found.comparisons[0].is_bitwise
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


class Changes(nn.Module):
    """Another model after its first calls, which a recording cannot know."""

    def __init__(self) -> None:
        super().__init__()
        self.layer, self.calls = nn.Linear(16, 32), 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.layer(x) * (1.0 if self.calls <= 9 else 2.0)


def test_a_model_that_changes_does_not_pass() -> None:
    case = models.case("mlp")
    with pytest.raises(trireme.Error, match="against plain loop"):
        trireme.verify(Changes(), case.loss, case.data, batch_size=16, microbatch_size=4)


def test_a_plan_of_another_model_is_refused() -> None:
    case, other = models.case("mlp"), models.case("transformer")
    graph = trireme.record(case.make(), case.loss, case.data)
    plan = trireme.plan(graph, stages=2)
    with pytest.raises(trireme.Error, match="the plan"):
        trireme.verify(other.make(), other.loss, other.data, plan=plan)
