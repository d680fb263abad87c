"""A training loop of one's own, as users of DistributedModel write it."""

from typing import Any

import torch
from torch.nn import functional

import trireme


@trireme.step
def train_step(
    model: trireme.DistributedModel, x: torch.Tensor, y: torch.Tensor
) -> dict[str, torch.Tensor]:
    outputs = model(x)
    loss = functional.cross_entropy(outputs, y)
    model.backward(loss)
    return {"loss": loss, "correct": (outputs.argmax(1) == y).sum(), "logits": outputs}


@trireme.step
def test_step(
    model: trireme.DistributedModel, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    outputs = model(x)
    return (outputs.argmax(1) == y).sum(), functional.cross_entropy(outputs, y, reduction="sum")


def rows_of_step(i: int) -> list[int]:
    """The last batch is smaller: of each half of 16 rows, 10."""
    return list(range(32)) if i < 3 else [*range(10), *range(16, 26)]


def make_net(last_stage: int) -> torch.nn.Module:
    """Three layers, of which the first is on stage 0."""
    net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU())
    with trireme.partition(last_stage):
        net.append(torch.nn.Linear(64, 64))
        net.append(torch.nn.ReLU())
    net.append(torch.nn.Linear(64, 4))
    trireme.set_partition(net[-1], last_stage)
    return net


def run(stages: int, folder: str, begin: int = 0) -> dict[str, Any]:
    """Steps `begin` to 3, from a checkpoint unless that is 0; writes one after the second. Losses, weights, and what
    two batches, each met twice, are evaluated to."""
    trireme.init(
        {
            "pipeline_parallel_degree": stages,
            "microbatches": 4,
            "auto_partition": False,
            "offload_activations": True,
        }
    )
    torch.manual_seed(0 if trireme.rank() == 0 else 7)  # rank 0's weights are everybody's
    model = trireme.DistributedModel(make_net(stages - 1))
    torch.manual_seed(1)
    inputs, targets = torch.randn(4, 32, 16), torch.randint(0, 4, (4, 32))
    optimizer = trireme.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    )
    schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
    if begin > 0:
        content = trireme.resume_from_checkpoint(folder, model=model, optimizer=optimizer)
        schedule.load_state_dict(content["schedule"])
    count = 32 // trireme.dp_size()
    rows = slice(trireme.dp_rank() * count, (trireme.dp_rank() + 1) * count)
    steps = []
    for i in range(begin, 4):
        optimizer.zero_grad()
        own = [row for row in rows_of_step(i) if rows.start <= row < rows.stop]
        out = train_step(model, inputs[i, own], targets[i, own])
        norm = model.clip_grad_norm_(0.2)
        optimizer.step()
        schedule.step()
        assert len(out["loss"]) == (4 if i < 3 else 3)
        steps.append([out["loss"].reduce_mean().item(), out["correct"].reduce_sum().item(), norm])
        if i == 1:
            content = {"schedule": schedule.state_dict()}
            trireme.save_checkpoint(
                folder, "two", model=model, optimizer=optimizer, user_content=content
            )
    return {
        "steps": steps,
        "local": sum(p.numel() for p in model.local_parameters()),
        "weights": {name: value.flatten().tolist() for name, value in model.state_dict().items()},
        "logits": out["logits"].concat().flatten().tolist(),
        "evaluated": evaluate(model, inputs[:, rows], targets[:, rows]),
    }


def evaluate(
    model: trireme.DistributedModel, inputs: torch.Tensor, targets: torch.Tensor
) -> list[float]:
    """Samples right and the sum of their losses, over all replicas, of the first two batches, twice."""
    model.eval()
    sums = torch.zeros(2, dtype=torch.float64)
    for i in (0, 1, 0, 1):
        outputs = test_step(model, inputs[i], targets[i])
        sums += torch.stack([out.reduce_sum().double() for out in outputs])
    trireme.init().all_reduce(sums)
    model.train()
    return (sums / trireme.pp_size()).tolist()
