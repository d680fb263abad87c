"""DDP's gradients in shared memory, and in an order that no number of ranks changes."""

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

import trireme.torch
from ranks import run_ranks
from workloads import NUM_STEPS, make_model, train

LANES = 4
LANE_SAMPLES = 3


def losses(with_hook: bool, as_views: bool) -> list[float]:
    model = DistributedDataParallel(
        make_model(), bucket_cap_mb=0.01, gradient_as_bucket_view=as_views
    )
    if with_hook:
        trireme.torch.register_ddp_hook(model)
    return train(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9))


@pytest.mark.parametrize("as_views", [False, True])
def test_losses_are_those_without_it(as_views: bool) -> None:
    with_hook = run_ranks(2, losses, True, as_views)
    assert with_hook == run_ranks(2, losses, False, as_views)
    assert len(with_hook[0]) == NUM_STEPS


def gradients_after_the_group() -> None:
    """Gradients outlive the memory of the group in which they were reduced."""
    model = DistributedDataParallel(make_model(), gradient_as_bucket_view=True)
    trireme.torch.register_ddp_hook(model)
    train(model, torch.optim.SGD(model.parameters(), 0.1))
    before = [p.grad.clone() for p in model.parameters()]
    dist.destroy_process_group()
    assert all(torch.equal(p.grad, old) for p, old in zip(model.parameters(), before, strict=True))
    for p in model.parameters():
        p.grad += 1


def test_gradients_outlive_the_group() -> None:
    run_ranks(2, gradients_after_the_group)


def bits_of(tensors: list[Tensor]) -> list[list[int]]:
    return [tensor.flatten().view(torch.int32).tolist() for tensor in tensors]


def trained_by_lanes(as_views: bool) -> tuple[list[list[int]], list[list[int]]]:
    """The bits of the last gradients and of the weights after some steps of LANES microbatches."""
    torch.manual_seed(3)
    model = DistributedDataParallel(
        nn.Sequential(nn.Linear(10, 33), nn.Tanh(), nn.Linear(33, 7)),
        bucket_cap_mb=0.0005,
        gradient_as_bucket_view=as_views,
    )
    trireme.torch.register_ddp_hook(model, deterministic=True, lanes=LANES)
    optimizer = torch.optim.Adam(model.parameters(), 0.05)
    own = LANES // dist.get_world_size()
    for step in range(4):
        optimizer.zero_grad(set_to_none=not as_views)
        data = torch.randn(LANES, LANE_SAMPLES, 10, generator=torch.Generator().manual_seed(step))
        for lane in range(dist.get_rank() * own, (dist.get_rank() + 1) * own):
            model(data[lane]).pow(3).mean().backward()
        optimizer.step()
    weights = [p.detach() for p in model.parameters()]
    return bits_of([p.grad for p in model.parameters()]), bits_of(weights)


@pytest.mark.parametrize("as_views", [False, True])
def test_bits_do_not_depend_on_the_number_of_ranks(as_views: bool) -> None:
    alone = run_ranks(1, trained_by_lanes, as_views)[0]
    for num_ranks in (2, 4):
        assert all(bits == alone for bits in run_ranks(num_ranks, trained_by_lanes, as_views))


def refused() -> None:
    model = DistributedDataParallel(nn.Linear(2, 2))
    with pytest.raises(ValueError, match="3 lanes for 2 ranks"):
        trireme.torch.register_ddp_hook(model, deterministic=True, lanes=3)
    with pytest.raises(ValueError, match="deterministic=True alone"):
        trireme.torch.register_ddp_hook(model, lanes=2)
    half = DistributedDataParallel(nn.Linear(2, 2).bfloat16())
    with pytest.raises(ValueError, match="f32 or f64"):
        trireme.torch.register_ddp_hook(half, deterministic=True)
    gloo = DistributedDataParallel(nn.Linear(2, 2), process_group=dist.new_group(backend="gloo"))
    with pytest.raises(ValueError, match="expected one of the backend 'trireme'"):
        trireme.torch.register_ddp_hook(gloo)


def test_what_it_cannot_do_is_refused() -> None:
    run_ranks(2, refused)
