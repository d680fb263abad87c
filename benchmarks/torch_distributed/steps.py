"""Training steps by DDP and FSDP2: how much of what a free reduction would save, Trireme saves.

A step's batch is chosen such that Gloo's reduction alone takes 12.5 % to 200 % of the step without
one. `saved` is (Gloo - Trireme) / (Gloo - free), of medians of steps in turn in the same
processes.
"""

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.fsdp import fully_shard
from torch.nn.parallel import DistributedDataParallel

import trireme.torch
from contenders import (
    Contenders,
    Group,
    Timing,
    alternate,
    make_contenders,
    parse,
    run_ranks,
    take_machine,
)

SHARES = (0.125, 0.25, 0.5, 1.0, 2.0)
WIDTH = 768
NUM_LAYERS = 8
Step = Callable[[], None]


def make_model() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(
        *(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(NUM_LAYERS))
    )


def ddp_model(group: Group, name: str) -> nn.Module:
    model = DistributedDataParallel(
        make_model(), process_group=group, gradient_as_bucket_view=True, bucket_cap_mb=6
    )
    if name == "trireme":
        trireme.torch.register_ddp_hook(model)
    if name == "free":
        model.register_comm_hook(None, leave)
    return model


def leave(_: object, bucket: dist.GradBucket) -> torch.futures.Future[Tensor]:
    """A hook of DDP that reduces nothing."""
    done: torch.futures.Future[Tensor] = torch.futures.Future()
    done.set_result(bucket.buffer())
    return done


def fsdp2_model(group: Group, name: str) -> nn.Module:
    mesh = DeviceMesh.from_group(group, "cpu")
    model = make_model()
    for layer in model:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def step_of(model: nn.Module, num_samples: int) -> Step:
    inputs = torch.randn(num_samples, WIDTH)

    def step() -> None:
        model(inputs).sum().backward()
        model.zero_grad(set_to_none=False)

    return step


def samples_for(share: float, model: nn.Module, reduction_ms: float, timing: Timing) -> int:
    """Samples of a step that takes reduction_ms / share without a reduction; one on all ranks."""
    few, many = 16, 128
    times = {str(n): step_of(model, n) for n in (few, many)}
    medians = alternate(times, timing, 1)
    per_sample = max(1e-3, (medians[str(many)] - medians[str(few)]) / (many - few))
    wanted = few + (reduction_ms / share - medians[str(few)]) / per_sample
    return max(4, round(wanted / 4) * 4)


def reduction_ms(contenders: Contenders, kind: str, timing: Timing) -> float:
    """Of all that Gloo moves in a step, alone."""
    numel = sum(p.numel() for p in make_model().parameters())
    group = contenders.groups["gloo"]
    part = numel // dist.get_world_size()
    whole, piece = torch.zeros(part * dist.get_world_size()), torch.zeros(part)

    def ddp() -> None:
        dist.all_reduce(whole, group=group)

    def fsdp2() -> None:
        for _ in range(2):  # forward and backward
            dist.all_gather_into_tensor(whole, piece, group=group)
        dist.reduce_scatter_tensor(piece, whole, group=group)

    return alternate({"gloo": ddp if kind == "ddp" else fsdp2}, timing, 1)["gloo"]


def compare(kind: str, timing: Timing) -> None:
    contenders = make_contenders(with_free=True)
    make = ddp_model if kind == "ddp" else fsdp2_model
    models = {name: make(group, name) for name, group in contenders.groups.items()}
    alone = reduction_ms(contenders, kind, timing)
    for share in SHARES:
        num_samples = samples_for(share, models["free"], alone, timing)
        steps = {name: step_of(model, num_samples) for name, model in models.items()}
        for _ in range(2):  # DDP's buckets are final after that
            for step in steps.values():
                step()
        medians = alternate(steps, timing, 2)
        saved = (medians["gloo"] - medians["trireme"]) / (medians["gloo"] - medians["free"])
        if dist.get_rank() == 0:
            print(
                f"{dist.get_world_size():5}  {kind:5}  {share:5.0%}  {num_samples:7}  "
                f"{alone:10.1f}  {medians['free']:8.1f}  {medians['trireme']:8.1f}  "
                f"{medians['gloo']:8.1f}  {saved:6.2f}",
                flush=True,
            )


def main() -> None:
    all_ranks, timing = parse(__doc__ or "", (2,))
    lock = take_machine()
    print(f"{NUM_LAYERS} layers of {WIDTH} x {WIDTH}, f32; medians in ms, of the slowest rank")
    print("ranks  kind   share  samples  Gloo alone      free   trireme      gloo   saved")
    for num_ranks in all_ranks:
        for kind in ("ddp", "fsdp2"):
            run_ranks(num_ranks, partial(compare, kind, timing))
    del lock


if __name__ == "__main__":
    main()
