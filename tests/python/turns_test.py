"""Steps of some losses and some parameters."""

import pytest
import torch
from torch import nn

import trireme


class Players(nn.Module):
    """A generator and a discriminator."""

    def __init__(self) -> None:
        super().__init__()
        self.generator = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 4))
        self.discriminator = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))


def discriminating(model: Players, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    true = model.discriminator(batch["x"])
    made = model.discriminator(model.generator(batch["noise"]).detach())
    return nn.functional.softplus(-true).mean() + nn.functional.softplus(made).mean()


def generating(model: Players, batch: dict[str, torch.Tensor]) -> torch.Tensor:
    return nn.functional.softplus(-model.discriminator(model.generator(batch["noise"]))).mean()


def test_two_players_take_turns_as_with_two_optimizers() -> None:
    torch.manual_seed(3)
    model, plain = Players(), Players()
    plain.load_state_dict(model.state_dict())
    data = {"x": torch.randn(16, 4), "noise": torch.randn(16, 3)}
    session = trireme.Session(
        model,
        lambda model, batch: {"d": discriminating(model, batch), "g": generating(model, batch)},
        data,
        plan="even",
        batch_size=16,
        microbatch_size=16,
        shuffled=False,
        learning_rate=0.05,
        turns=[trireme.Turn(["discriminator.*"], ["d"], 2), trireme.Turn(["generator.*"], ["g"])],
    )
    optimizers = [
        torch.optim.AdamW(player.parameters(), lr=0.05, weight_decay=0.01)
        for player in (plain.discriminator, plain.generator)
    ]
    for step in range(6):
        discriminates = step % 3 < 2
        plain.zero_grad()
        loss = (discriminating if discriminates else generating)(plain, data)
        loss.backward()
        optimizers[0 if discriminates else 1].step()
        assert session.step().loss == pytest.approx(loss.item(), rel=1e-5)
    for name, value in session.weights().items():
        torch.testing.assert_close(value, plain.state_dict()[name], rtol=1e-4, atol=1e-6)
