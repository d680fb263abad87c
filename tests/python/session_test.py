"""trireme.Session: unmodified modules, trained by the ranks of a plan."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import models
import programs
import trireme
from training import TRAINED, train


def plain_losses(
    name: str, learning_rate: float, dtype: torch.dtype = torch.float32
) -> list[float]:
    """Of a plain loop of SGD on the same samples: microbatches of 4, gradients averaged, no dropout."""
    case = models.case(name)
    torch.manual_seed(1)
    model = case.make().eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate)
    losses = []
    for step in range(3):
        optimizer.zero_grad()
        total = 0.0
        for m in range(4):
            begin = (16 * step + 4 * m) % 32
            batch = {key: value[begin : begin + 4] for key, value in case.data.items()}
            with torch.autocast("cpu", dtype, enabled=dtype != torch.float32):
                loss = case.loss(model, batch) if case.loss else model(**batch).loss
            (loss / 4).backward()
            total += float(loss.detach()) / 4
        optimizer.step()
        losses.append(total)
    return losses


@pytest.mark.parametrize("name", models.NAMES)
def test_unmodified_models_are_recorded_split_and_trained(name: str) -> None:
    # The first step is compared with the module itself, bit by bit.
    assert train(name, stages=3, serial=True) == train(name, stages=1, serial=True)


@pytest.mark.parametrize("name", ["mlp", "gpt2", "t5", "bert_padded"])
def test_losses_are_those_of_a_plain_loop(name: str) -> None:
    case = models.case(name)
    torch.manual_seed(1)
    session = trireme.Session(
        case.make().eval(),  # without dropout, whose random numbers are our own
        case.loss,
        case.data,
        shuffled=False,
        optimizer="sgd",
        momentum=0.0,
        weight_decay=0.0,
        learning_rate=0.1,
        stages=2,
        serial=True,
        **TRAINED,
    )
    assert [r.loss for r in session] == pytest.approx(plain_losses(name, 0.1), abs=1e-6)


@pytest.mark.parametrize(("precision", "dtype"), [("bf16", torch.bfloat16), ("f16", torch.float16)])
def test_precision_is_that_of_autocast(precision: str, dtype: torch.dtype) -> None:
    case = models.case("gpt2")
    torch.manual_seed(1)
    session = trireme.Session(
        case.make().eval(),
        case.loss,
        case.data,
        shuffled=False,
        optimizer="sgd",
        momentum=0.0,
        weight_decay=0.0,
        learning_rate=0.1,
        stages=2,
        serial=True,
        precision=precision,
        **TRAINED,
    )
    reports = list(session)
    assert [r.loss for r in reports] == pytest.approx(plain_losses("gpt2", 0.1, dtype), abs=2e-3)
    assert [r.loss_scale for r in reports] == [65536 if precision == "f16" else 0] * len(reports)
    with pytest.raises(TypeError, match="precision is one of f32, bf16, f16"):
        trireme.Session(case.make(), case.loss, case.data, precision="half", **TRAINED)


def test_groups_and_rates_are_those_of_torch() -> None:
    case = models.case("mlp")
    torch.manual_seed(1)
    plain = case.make().eval()
    session = trireme.Session(
        case.make().eval(),
        case.loss,
        case.data,
        shuffled=False,
        optimizer="adamw",
        learning_rate=0.05,
        weight_decay=0.2,
        beta2=0.95,
        rate_schedule=lambda step: 0.5**step,
        groups=[trireme.ParameterGroup("*.bias", weight_decay=0.0)],
        stages=2,
        serial=True,
        **TRAINED,
    )
    plain.load_state_dict(session.weights())
    named = dict(plain.named_parameters())
    biases = [p for n, p in named.items() if n.endswith(".bias")]
    others = [p for n, p in named.items() if not n.endswith(".bias")]
    optimizer = torch.optim.AdamW(
        [{"params": others}, {"params": biases, "weight_decay": 0.0}],
        lr=0.05,
        weight_decay=0.2,
        betas=(0.9, 0.95),
    )
    rates = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 0.5**step)
    for report in session:
        optimizer.zero_grad()
        for m in range(4):
            begin = (16 * report.step + 4 * m) % 32
            batch = {key: value[begin : begin + 4] for key, value in case.data.items()}
            assert case.loss
            (case.loss(plain, batch) / 4).backward()
        optimizer.step()
        rates.step()
    weights = session.weights()
    for name, parameter in named.items():
        torch.testing.assert_close(weights[name], parameter.detach(), atol=1e-6, rtol=1e-4)


def test_ranks_have_the_bits_of_one_process() -> None:
    names = ["mlp", "transformer", "unet"]
    alone = [train(name) for name in names]
    rounded = {"gradient_dtype": "bf16", "lanes": 4}
    runs = [
        ["mlp", {"plan": "auto"}],  # measured, then chosen
        ["transformer", {"plan": "even", "stages": 2, "replicas": 2, "shard_state": True}],
        ["unet", {"plan": "even", "stages": 4, "replicas": 1}],
        ["unet", {"plan": "even", "stages": 2, "replicas": 2, "shard_parameters": True}],
        ["mlp", {"plan": "even", "stages": 4, "replicas": 1}],
        ["mlp", {"plan": "even", "stages": 1, "replicas": 4, **rounded}],
    ]
    found = programs.result_of("training_program.py", "4", json.dumps(runs))
    assert found == [*alone, alone[2], alone[0], train("mlp", **rounded)]


class Wide(nn.Module):
    """Initialised in the ways that models have, some of them not in place."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(16, 4096)
        self.second = nn.Linear(4096, 32)
        nn.init.trunc_normal_(self.second.weight, std=0.02)
        self.scale = nn.Parameter(torch.randn(32, 1024) * 0.02)
        self.register_buffer("noise", torch.rand(1024, 32))
        self.third = nn.Linear(32, 1024)
        self.copied = copy.deepcopy(self.third)
        self.third.weight.detach().numpy()[0] = 0.5

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = self.second(torch.relu(self.first(x)))
        return (hidden @ self.scale + self.third(hidden) * self.copied(hidden)) @ self.noise


def test_a_function_makes_the_model_with_or_without_its_weights() -> None:
    def loss(model: nn.Module, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        return model(batch["x"]).square().mean()

    data = {"x": torch.randn(32, 16)}

    def trained(**options: Any) -> dict[str, torch.Tensor]:
        session = trireme.Session(Wide, loss, data, plan="even", **options, **TRAINED)
        session.step()
        return session.weights()

    expected = trained(seed=3)
    for other in (trained(seed=3, deferred_init=True), trained(seed=3, serial=True)):
        assert all(torch.equal(other[name], value) for name, value in expected.items())
    assert not torch.equal(trained(seed=4)["second.weight"], expected["second.weight"])
    with pytest.raises(TypeError, match="deferred_init is for a function that makes the model"):
        trireme.Session(Wide(), loss, data, deferred_init=True, **TRAINED)


class Fails(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        raise ValueError("not today")


def test_what_the_model_raises_is_the_cause() -> None:
    case = models.case("mlp")
    with pytest.raises(trireme.Error, match="ValueError: not today .*session_test.py") as caught:
        trireme.Session(Fails(), case.loss, case.data, **TRAINED)
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.kind == "model failure"


@pytest.mark.parametrize("name", ["gpt2", "resnet18"])  # tied weights; buffers that count
def test_weights_are_a_state_dict(name: str) -> None:
    case = models.case(name)
    torch.manual_seed(1)
    model = case.make()
    session = trireme.Session(model, case.loss, case.data, stages=2, serial=True, **TRAINED)
    session.step()
    other = case.make()
    other.load_state_dict(session.weights())
    for key, value in other.state_dict().items():
        assert torch.equal(value, model.state_dict()[key]), key


def test_what_is_due_is_done_by_run_and_by_iteration(tmp_path: Path) -> None:
    case = models.case("mlp")
    due: dict[str, list[tuple[int, bool]]] = {}
    for way in ("run", "iteration"):
        evaluated: list[tuple[int, bool]] = []
        saved: list[tuple[int, bool]] = []
        session = trireme.Session(
            case.make(),
            case.loss,
            case.data,
            evaluation=case.data,
            folder=str(tmp_path / way),
            checkpoint_every=2,
            evaluate_every=2,
            on_evaluation=lambda steps, losses, to=evaluated: to.append((steps, losses.total > 0)),
            on_checkpoint=lambda steps, folder, to=saved: to.append((steps, Path(folder).is_dir())),
            stages=1,
            **TRAINED,
        )
        if way == "run":
            end = session.run()
        else:
            assert len(list(session)) == TRAINED["steps"]
            end = session.finish()
        assert end.steps_done == TRAINED["steps"] and end.evaluation is not None
        due[way] = [*evaluated, *saved]
    assert due["run"] == due["iteration"]
    assert due["run"] == [(0, True), (2, True), (2, True), (3, True)]


def test_who_follows_a_run_finds_the_loss_of_the_plain_model(tmp_path: Path) -> None:
    case = models.case("mlp")
    assert case.loss is not None
    folder = str(tmp_path / "run")
    torch.manual_seed(1)
    elsewhere = {"evaluation": case.data, "stages": 1, **TRAINED}
    run = trireme.Session(
        case.make(), case.loss, case.data, folder=folder, evaluates_elsewhere=True, **elsewhere
    )
    run.step()
    run.save()
    weights = run.weights()
    run.close()

    found: list[tuple[int, float]] = []

    def take(steps: int, losses: Any) -> None:
        found.append((steps, losses.total))
        session.request_stop()

    session = trireme.Session(case.make(), case.loss, case.data, on_evaluation=take, **elsewhere)
    assert session.follow(folder) == 1
    plain = case.make().eval()
    plain.load_state_dict(weights)
    with torch.no_grad():
        assert found == [(1, pytest.approx(float(case.loss(plain, case.data)), rel=1e-5))]


def test_a_closed_session_says_so() -> None:
    case = models.case("mlp")
    session = trireme.Session(case.make(), case.loss, case.data, serial=True, **TRAINED)
    session.step()
    session.close()
    with pytest.raises(RuntimeError, match="the session is closed"):
        session.step()


def test_wrong_options_are_refused() -> None:
    case = models.case("mlp")
    model = case.make()
    with pytest.raises(TypeError, match="no option 'learning_rat'.*learning_rate"):
        trireme.Session(model, case.loss, case.data, learning_rat=1.0, **TRAINED)
    with pytest.raises(ValueError, match="microbatch_size=5 does not divide batch_size=16"):
        trireme.Session(model, case.loss, case.data, batch_size=16, microbatch_size=5)
    with pytest.raises(TypeError, match="DataLoader; give its data set"):
        loader: Any = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.ones(4, 16)))
        trireme.Session(model, case.loss, loader, **TRAINED)


class Squares(torch.utils.data.Dataset[dict[str, Any]]):
    """Samples made when they are asked for; `odd` has another length."""

    def __init__(self, odd: int = -1) -> None:
        self.odd = odd

    def __len__(self) -> int:
        return 40

    def __getitem__(self, index: int) -> dict[str, Any]:
        length = 15 if index == self.odd else 16
        return {"x": torch.full((length,), float(index)), "y": index % 32}


def test_a_map_style_data_set_is_read_by_index() -> None:
    case = models.case("mlp")
    torch.manual_seed(1)
    read = trireme.Session(case.make(), case.loss, Squares(), serial=True, **TRAINED)
    torch.manual_seed(1)
    samples = [Squares()[i] for i in range(40)]
    held = {key: torch.stack([torch.as_tensor(s[key]) for s in samples]) for key in ("x", "y")}
    other = trireme.Session(case.make(), case.loss, held, serial=True, **TRAINED)
    assert [r.loss for r in read] == [r.loss for r in other]


def test_samples_of_another_shape_are_named() -> None:
    case = models.case("mlp")
    with pytest.raises(trireme.Error, match=r"field 'x' of sample 7 is Float \[15\]"):
        session = trireme.Session(case.make(), case.loss, Squares(7), serial=True, **TRAINED)
        for _ in session:
            pass


class Square(torch.autograd.Function):
    """A backward that no operator has."""

    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return 2 * gradient * x


class Route(nn.Module):
    """Control flow that depends on data."""

    def __init__(self) -> None:
        super().__init__()
        self.small, self.large = nn.Linear(16, 16), nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.small(x) if x.mean() < 0 else self.large(x)


class Routed(nn.Module):
    def __init__(self, *, marked: bool = True) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(16, 16), nn.Linear(16, 32)
        self.route = trireme.opaque(Route()) if marked else Route()
        self.square = trireme.opaque(Square.apply) if marked else Square.apply

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.square(self.route(self.first(x))))


def test_code_that_cannot_be_recorded_is_refused_by_name() -> None:
    case = models.case("mlp")
    with pytest.raises(trireme.Error, match=r"is_nonzero .*near parameter 'first.bias'"):
        trireme.record(Routed(marked=False), case.loss, case.data)


def test_opaque_code_runs_in_python() -> None:
    case = models.case("mlp")
    losses = []
    for stages in (1, 3):
        torch.manual_seed(1)
        session = trireme.Session(
            Routed(), case.loss, case.data, stages=stages, serial=True, optimizer="sgd", **TRAINED
        )
        losses.append([report.loss for report in session])
    assert losses[0] == losses[1]
    assert losses[0][0] != losses[0][2]
