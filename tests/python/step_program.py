"""A training loop of one's own on several ranks; rank 0 prints losses and weights as JSON.

step_program.py RANKS STAGES FOLDER PART    PART: `all` steps, or a checkpoint after the `first` two, or the `rest`
"""

import json
import sys

import torch
from torch.nn import functional

import trireme

ranks, stages = int(sys.argv[1]), int(sys.argv[2])
folder, part = sys.argv[3], sys.argv[4]
trireme.init(
    {"pipeline_parallel_degree": stages, "microbatches": 4, "auto_partition": False}, ranks=ranks
)

torch.manual_seed(0 if trireme.rank() == 0 else 7)  # rank 0's weights are everybody's
net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU())
with trireme.partition(stages - 1):
    net.append(torch.nn.Linear(64, 64))
    net.append(torch.nn.ReLU())
net.append(torch.nn.Linear(64, 4))
trireme.set_partition(net[-1], stages - 1)
torch.manual_seed(1)
inputs, targets = torch.randn(4, 32, 16), torch.randint(0, 4, (4, 32))

model = trireme.DistributedModel(net)
optimizer = trireme.DistributedOptimizer(torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9))
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)


@trireme.step
def train_step(
    model: trireme.DistributedModel, x: torch.Tensor, y: torch.Tensor
) -> dict[str, torch.Tensor]:
    outputs = model(x)
    loss = functional.cross_entropy(outputs, y)
    model.backward(loss)
    return {"loss": loss, "correct": (outputs.argmax(1) == y).sum()}


@trireme.step
def test_step(
    model: trireme.DistributedModel, x: torch.Tensor, y: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    outputs = model(x)
    return (outputs.argmax(1) == y).sum(), functional.cross_entropy(outputs, y, reduction="sum")


if part == "rest":
    content = trireme.resume_from_checkpoint(folder, model=model, optimizer=optimizer)
    schedule.load_state_dict(content["schedule"])
found = []
count, replica = 32 // trireme.dp_size(), trireme.dp_rank()
for i in {"all": range(4), "first": range(2), "rest": range(2, 4)}[part]:
    rows = slice(replica * count, (replica + 1) * count)
    optimizer.zero_grad()
    out = train_step(model, inputs[i, rows], targets[i, rows])
    norm = model.clip_grad_norm_(0.2)
    optimizer.step()
    schedule.step()
    assert len(out["loss"]) == 4
    found.append([out["loss"].reduce_mean().item(), out["correct"].reduce_sum().item(), norm])
if part == "first":
    trireme.save_checkpoint(
        folder,
        tag="two",
        model=model,
        optimizer=optimizer,
        user_content={"schedule": schedule.state_dict()},
    )
model.eval()
evaluated = [0.0, 0.0]
for _ in range(2):  # all samples twice, in two batches
    for i in (0, 1):
        rows = slice(replica * count, (replica + 1) * count)
        outputs = test_step(model, inputs[i, rows], targets[i, rows])
        sums = torch.stack([out.reduce_sum().double() for out in outputs])
        trireme.init().all_reduce(sums)
        evaluated = [
            a + b for a, b in zip(evaluated, (sums / trireme.pp_size()).tolist(), strict=True)
        ]
model.train()
local = sum(p.numel() for p in model.local_parameters())
weights = {name: value.flatten().tolist() for name, value in model.state_dict().items()}
if trireme.rank() == 0:
    print(json.dumps({"steps": found, "weights": weights, "local": local, "evaluated": evaluated}))
