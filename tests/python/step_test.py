"""trireme.step, DistributedModel, DistributedOptimizer: training loops of one's own."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional

import programs
import step_loop
import trireme


def plain() -> dict[str, Any]:
    """The loop of step_loop.py with torch alone, in one process."""
    torch.manual_seed(0)
    net = torch.nn.Sequential(
        torch.nn.Linear(16, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 64),
        torch.nn.ReLU(),
        torch.nn.Linear(64, 4),
    )
    torch.manual_seed(1)
    inputs, targets = torch.randn(4, 32, 16), torch.randint(0, 4, (4, 32))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    steps = []
    for i in range(4):
        optimizer.zero_grad()
        rows = step_loop.rows_of_step(i)
        outputs = net(inputs[i, rows])
        loss = functional.cross_entropy(outputs, targets[i, rows])
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 0.2)
        optimizer.step()
        schedule.step()
        correct = int((outputs.argmax(1) == targets[i, rows]).sum())
        steps.append([loss.item(), correct, norm.item()])
    weights = {name: value.flatten().tolist() for name, value in net.state_dict().items()}
    with torch.no_grad():
        logits, labels = net(inputs[:2].flatten(0, 1)), targets[:2].flatten()
        correct = int((logits.argmax(1) == labels).sum())
        loss = functional.cross_entropy(logits, labels, reduction="sum").item()
    return {
        "steps": steps,
        "weights": weights,
        "logits": outputs.flatten().tolist(),
        "evaluated": [2 * correct, 2 * loss],
    }


def check_same(found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Weights and evaluations; losses and returned tensors are of one replica, the first."""
    own = len(found["logits"])
    assert found["logits"] == pytest.approx(expected["logits"][:own], abs=2e-6)
    assert found["evaluated"] == pytest.approx(expected["evaluated"], rel=1e-5)
    for name, value in expected["weights"].items():
        assert found["weights"][name] == pytest.approx(value, abs=2e-6), name


def test_a_loop_on_stages_and_replicas_is_a_plain_loop_and_is_continued_by_others(
    tmp_path: Path,
) -> None:
    expected = plain()
    found = programs.result_of("step_program.py", "4", "2", str(tmp_path))
    check_same(found, expected)
    norms = [step[2] for step in expected["steps"]]
    assert [step[2] for step in found["steps"]] == pytest.approx(norms, abs=2e-6)
    assert found["local"] == 64 * 16 + 64  # the first layer is not in partition 1

    rest = step_loop.run(1, str(tmp_path), begin=2)
    check_same(rest, expected)
    for step, other in zip(rest["steps"], expected["steps"][2:], strict=True):
        assert step == pytest.approx(other, abs=2e-6)


def one_layer() -> "trireme.DistributedModel":
    trireme.init({"microbatches": 2})
    return trireme.DistributedModel(torch.nn.Linear(4, 2))


def test_every_step_ends_with_an_update() -> None:
    model = one_layer()

    @trireme.step
    def train_step(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean()
        model.backward(loss)
        return loss

    train_step(torch.ones(8, 4))
    with pytest.raises(trireme.Error, match="`backward` comes after `update`"):
        train_step(torch.ones(8, 4))


def test_arguments_are_as_in_the_first_call() -> None:
    model = one_layer()
    optimizer = trireme.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))

    @trireme.step(non_split_inputs=["weight"], input_split_axes={"x": 1})
    def train_step(
        model: Any, x: torch.Tensor, weight: torch.Tensor, power: int, rest: dict[str, torch.Tensor]
    ) -> Any:
        loss = (model(x.T) * weight).pow(power).mean() + rest["bias"].mean()
        model.backward(loss)
        return loss, {"power": power}

    rest = {"bias": torch.ones(8)}
    loss, constants = train_step(model, torch.ones(4, 8), torch.ones(2), 2, rest)
    assert constants == {"power": 2}
    expected = (
        torch.nn.functional.linear(torch.ones(4), model.module.weight, model.module.bias)
    ).pow(2).mean() + 1
    assert loss.reduce_mean().item() == pytest.approx(expected.item(), abs=1e-6)
    optimizer.step()
    with pytest.raises(ValueError, match="power was 2 in the first call"):
        train_step(model, torch.ones(4, 8), torch.ones(2), 3, rest)
    with pytest.raises(ValueError, match="rest is built otherwise"):
        train_step(model, torch.ones(4, 8), torch.ones(2), 2, {"other": torch.ones(8)})
    with pytest.raises(ValueError, match="the batch has 9 samples, that of the first step had 8"):
        train_step(model, torch.ones(4, 9), torch.ones(2), 2, {"bias": torch.ones(9)})
    with pytest.raises(ValueError, match="the batch has 0 samples"):
        train_step(model, torch.ones(4, 0), torch.ones(2), 2, {"bias": torch.ones(0)})


def test_a_smaller_batch_is_a_step_of_its_samples() -> None:
    model = one_layer()
    optimizer = trireme.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))

    @trireme.step
    def train_step(x: torch.Tensor) -> torch.Tensor:
        loss = model(x).square().mean()
        model.backward(loss)
        return loss

    torch.manual_seed(0)
    x = torch.randn(8, 4)
    for count in (8, 7, 4, 3, 1, 8):
        plain = torch.nn.Linear(4, 2)
        plain.load_state_dict(model.state_dict())
        expected = plain(x[:count]).square().mean()
        expected.backward()
        loss = train_step(x[:count])
        assert len(loss) == (2 if count > 4 else 1)
        assert loss.reduce_mean().item() == pytest.approx(expected.item(), rel=1e-6)
        for name, parameter in model.named_parameters():
            assert torch.allclose(parameter.grad, plain.get_parameter(name).grad, atol=1e-6), name
        optimizer.step()


def test_tensors_come_back_by_microbatch() -> None:
    model = one_layer()
    optimizer = trireme.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1))

    @trireme.step
    def train_step(x: torch.Tensor) -> Any:
        outputs = model(x)
        model.backward(outputs.mean())
        return {"outputs": outputs, "rows": torch.arange(x.shape[0]), "name": "kept"}

    x = torch.randn(8, 4)
    for _ in range(2):
        before = model.module(x).detach()
        found = train_step(x)
        optimizer.step()
        assert torch.allclose(found["outputs"].concat(), before, atol=1e-6)
        assert found["outputs"].stack().shape == (2, 4, 2)
        assert torch.allclose(found["outputs"].reduce_mean(), (before[:4] + before[4:]) / 2)
        assert found["rows"].concat().tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
        assert found["name"] == "kept"
    model.eval()
    evaluate = trireme.step(lambda x: model(x))
    assert torch.allclose(evaluate(x[:7]).concat(), model.module(x[:7]), atol=1e-6)


def test_what_a_step_cannot_do_is_refused() -> None:
    model = one_layer()
    with pytest.raises(RuntimeError, match="inside a function of @trireme.step"):
        model.backward(torch.ones(()))

    @trireme.step
    def without_backward(x: torch.Tensor) -> torch.Tensor:
        return model(x).mean()

    with pytest.raises(trireme.Error, match=r"has not called model.backward"):
        without_backward(torch.ones(8, 4))

    @trireme.step
    def two_sizes(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return model(x).mean()

    with pytest.raises(ValueError, match="have x: 8, y: 7"):
        two_sizes(torch.ones(8, 4), torch.ones(7))
    with pytest.raises(ValueError, match="7 samples are not 2 microbatches"):
        without_backward_of_seven = trireme.step(lambda x: model(x).mean())
        without_backward_of_seven(torch.ones(7, 4))


def test_partitions_follow_the_order_of_operators() -> None:
    trireme.init({"microbatches": 2})
    with trireme.partition(1):
        first = torch.nn.Linear(4, 4)
    net = torch.nn.Sequential(first, torch.nn.Linear(4, 4))
    graph = trireme.record(net, lambda m, b: m(b["x"]).mean(), {"x": torch.ones(8, 4)})
    from trireme.manual_partition import cuts_between, partitions_of

    partitions = partitions_of(net, 0)
    assert partitions == {"0.weight": 1, "0.bias": 1, "1.weight": 0, "1.bias": 0}
    with pytest.raises(
        ValueError, match=r"between the parameters 1.weight \(partition 0\).*0.bias \(partition 1\)"
    ):
        cuts_between(graph, partitions, 2)
    trireme.set_partition(net, 2)
    with pytest.raises(ValueError, match="is on partition 2; there are 0 to 1"):
        cuts_between(graph, partitions_of(net, 0), 2)
