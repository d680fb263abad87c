"""Collectives through torch.distributed: Trireme beside Gloo, in turn, in the same processes."""

from collections.abc import Callable
from functools import partial

import torch
import torch.distributed as dist
from torch import Tensor

from contenders import Group, Timing, alternate, make_contenders, parse, run_ranks, take_machine

SIZES = [4, 4 << 10, 64 << 10, 1 << 20, 16 << 20]  # bytes of the larger buffer


def make_calls(group: Group, numel: int) -> dict[str, Callable[[], Tensor]]:
    """A call of each operation on buffers of ``numel`` f32, which returns its result."""
    size = dist.get_world_size()
    part = max(1, numel // size)
    whole, whole_out = torch.ones(part * size), torch.empty(part * size)
    piece = torch.ones(part)
    piece_out = torch.empty(part)
    data = torch.ones(numel)

    def all_reduce() -> Tensor:
        data.fill_(1)
        dist.all_reduce(data, group=group)
        return data / size

    def all_gather() -> Tensor:
        dist.all_gather_into_tensor(whole_out, piece, group=group)
        return whole_out

    def reduce_scatter() -> Tensor:
        dist.reduce_scatter_tensor(piece_out, whole, group=group)
        return piece_out / size

    def all_to_all() -> Tensor:
        dist.all_to_all_single(whole_out, whole, group=group)
        return whole_out

    return {call.__name__: call for call in (all_reduce, all_gather, reduce_scatter, all_to_all)}


def timed_calls(group: Group, numel: int) -> dict[str, Callable[[], object]]:
    """The same without the check of the result."""
    size = dist.get_world_size()
    part = max(1, numel // size)
    whole, whole_out = torch.ones(part * size), torch.empty(part * size)
    piece, data = torch.ones(part), torch.zeros(numel)
    return {
        "all_reduce": lambda: dist.all_reduce(data, group=group),
        "all_gather": lambda: dist.all_gather_into_tensor(whole_out, piece, group=group),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(piece, whole, group=group),
        "all_to_all": lambda: dist.all_to_all_single(whole_out, whole, group=group),
    }


def compare(timing: Timing) -> None:
    contenders = make_contenders()
    for size_bytes in SIZES:
        numel = max(1, size_bytes // 4)
        repeats = 50 if size_bytes < 1 << 20 else 3
        for operation in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            for group in contenders.groups.values():
                result = make_calls(group, numel)[operation]()
                assert torch.equal(result, torch.ones_like(result)), operation
            timed = {
                name: timed_calls(group, numel)[operation]
                for name, group in contenders.groups.items()
            }
            medians = alternate(timed, timing, repeats)
            if dist.get_rank() == 0:
                own, other = medians["trireme"], medians["gloo"]
                print(
                    f"{dist.get_world_size():5}  {operation:14} {size_bytes:>10}  {own:9.3f} "
                    f"{other:9.3f}  {other / own:6.2f}",
                    flush=True,
                )


def main() -> None:
    all_ranks, timing = parse(__doc__ or "", (2, 4))
    lock = take_machine()
    print("f32; medians in ms, of the slowest rank; ratio: Gloo / Trireme, above 1 is faster")
    print("ranks  operation           bytes    trireme      gloo   ratio")
    for num_ranks in all_ranks:
        run_ranks(num_ranks, partial(compare, timing))
    del lock


if __name__ == "__main__":
    main()
