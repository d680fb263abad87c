"""Every collective of torch.distributed on the backend, beside what it is defined to be."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import Tensor

from ranks import run_ranks

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32,
    torch.int16, torch.int8, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.bool,
    torch.complex64, torch.complex128, torch.float8_e4m3fn, torch.float8_e5m2,
]  # fmt: skip
SHAPES = [(), (0,), (1,), (3, 5), (4, 0, 2), (70_001,)]


def numbers(rank: int, shape: tuple[int, ...], dtype: torch.dtype) -> Tensor:
    """Small whole numbers that depend on the rank: sums of them are exact in each dtype."""
    count = torch.Size(shape).numel()
    return ((torch.arange(count).reshape(shape) + rank) % 3).to(dtype)


def of_all(shape: tuple[int, ...], dtype: torch.dtype) -> list[Tensor]:
    return [numbers(rank, shape, dtype) for rank in range(dist.get_world_size())]


def same(a: Tensor, b: Tensor) -> bool:
    is_alike = bool(a.dtype == b.dtype and a.shape == b.shape)
    return is_alike and bool(torch.equal(bytes_of(a), bytes_of(b)))


def bytes_of(tensor: Tensor) -> Tensor:
    return tensor.contiguous().reshape(-1).view(torch.uint8)


def moves() -> None:
    """What changes no bytes, of every dtype and shape."""
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in DTYPES:
        for shape in SHAPES:
            all_of_them = of_all(shape, dtype)
            mine = all_of_them[rank]
            tensor = mine.clone()
            dist.broadcast(tensor, size - 1)
            assert same(tensor, all_of_them[-1]), ("broadcast", dtype, shape)
            outputs = [torch.empty_like(mine) for _ in range(size)]
            dist.all_gather(outputs, mine)
            assert all(map(same, outputs, all_of_them)), ("all_gather", dtype, shape)
            outputs = [torch.empty_like(mine) for _ in range(size)]
            dist.gather(mine, outputs if rank == 0 else None, 0)
            assert rank != 0 or all(map(same, outputs, all_of_them)), ("gather", dtype, shape)
            tensor = torch.empty_like(mine)
            dist.scatter(tensor, all_of_them if rank == 0 else None, 0)
            assert same(tensor, mine), ("scatter", dtype, shape)
            outputs = [torch.empty_like(mine) for _ in range(size)]
            dist.all_to_all(outputs, [mine] * size)
            assert all(map(same, outputs, all_of_them)), ("all_to_all", dtype, shape)
            flat = torch.empty((size, *shape), dtype=dtype)
            dist.all_gather_into_tensor(flat, mine)
            assert all(map(same, flat, all_of_them)), ("all_gather_into_tensor", dtype, shape)


def test_what_moves_arrives_of_every_dtype_and_shape() -> None:
    run_ranks(3, moves)


Fold = Callable[[Tensor, Tensor], Tensor]
FOLDS: dict[object, Fold] = {
    dist.ReduceOp.SUM: torch.add,
    dist.ReduceOp.PRODUCT: torch.mul,
    dist.ReduceOp.MIN: torch.minimum,
    dist.ReduceOp.MAX: torch.maximum,
    dist.ReduceOp.BAND: torch.bitwise_and,
    dist.ReduceOp.BOR: torch.bitwise_or,
    dist.ReduceOp.BXOR: torch.bitwise_xor,
}


def has_reduction(op: object, dtype: torch.dtype) -> bool:
    if op in (dist.ReduceOp.BAND, dist.ReduceOp.BOR, dist.ReduceOp.BXOR):
        return not dtype.is_floating_point and not dtype.is_complex
    return op == dist.ReduceOp.SUM or not dtype.is_complex


def reduced(op: object, tensors: list[Tensor]) -> Tensor:
    """In a type that has all operations in torch."""
    dtype = tensors[0].dtype
    wide = torch.int64 if not dtype.is_floating_point and not dtype.is_complex else torch.float64
    wide = torch.complex128 if dtype.is_complex else wide
    total = tensors[0].to(wide)
    for tensor in tensors[1:]:
        total = FOLDS[op](total, tensor.to(wide))
    return total.to(dtype)


def reductions() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    for op in FOLDS:
        for dtype in DTYPES:
            if not has_reduction(op, dtype):
                continue
            for shape in SHAPES:
                place = (str(op), dtype, shape)
                all_of_them = of_all(shape, dtype)
                expected = reduced(op, all_of_them)
                tensor = all_of_them[rank].clone()
                dist.all_reduce(tensor, op)
                assert same(tensor, expected), ("all_reduce", *place)
                tensor = all_of_them[rank].clone()
                dist.reduce(tensor, 1, op)
                assert same(tensor, expected if rank == 1 else all_of_them[rank]), place
                tensor = torch.empty_like(expected)
                inputs = [all_of_them[rank].clone() for _ in range(size)]
                dist.reduce_scatter(tensor, inputs, op)
                assert same(tensor, expected), ("reduce_scatter", *place)
                flat = torch.stack(inputs)
                dist.reduce_scatter_tensor(tensor, flat, op)
                assert same(tensor, expected), ("reduce_scatter_tensor", *place)
                assert all(same(row, inputs[0]) for row in flat), "the input is as it was"


@pytest.mark.parametrize("num_ranks", [2, 3])
def test_reductions_of_every_dtype_and_shape(num_ranks: int) -> None:
    run_ranks(num_ranks, reductions)


def averages() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    for dtype in DTYPES:
        if dtype in (torch.bool, torch.uint16, torch.uint32, torch.uint64):
            continue
        tensor = torch.tensor([2 * rank, 2 * rank + 1]).to(dtype)
        dist.all_reduce(tensor, dist.ReduceOp.AVG)
        exact = torch.tensor([size - 1.0, float(size)], dtype=torch.float64)
        assert torch.equal(tensor.to(torch.complex128).real, exact), dtype
    whole = torch.tensor([-1 if rank == 0 else 0])
    dist.all_reduce(whole, dist.ReduceOp.AVG)
    assert whole.item() == -1  # rounded down
    for dtype in (torch.float32, torch.bfloat16, torch.float64, torch.complex64):
        tensor = torch.full((5,), 2.0).to(dtype)
        dist.all_reduce(tensor, dist._make_nccl_premul_sum(0.5))
        assert torch.equal(tensor, torch.full((5,), float(size)).to(dtype)), dtype
    scaled = torch.full((3,), 4.0)
    own_factor = torch.tensor([1.0 / (rank + 1)])
    dist.all_reduce(scaled, dist._make_nccl_premul_sum(own_factor))
    assert torch.allclose(scaled, torch.full((3,), sum(4.0 / (i + 1) for i in range(size))))


def test_averages_and_scaled_sums() -> None:
    run_ranks(3, averages)


def layouts() -> None:
    """Tensors that are no contiguous memory, and views of others."""
    rank, size = dist.get_rank(), dist.get_world_size()
    base = torch.zeros(6, 8)
    base[:, ::2] = rank + 1.0
    view = base[:, ::2].t()
    dist.all_reduce(view)
    assert torch.equal(base[:, ::2], torch.full((6, 4), size * (size + 1) / 2))
    assert torch.equal(base[:, 1::2], torch.zeros(6, 4)), "nothing beside the view is written"
    image = torch.full((2, 3, 4, 5), float(rank)).to(memory_format=torch.channels_last)
    dist.broadcast(image, 1)
    assert torch.equal(image, torch.ones(2, 3, 4, 5))
    outputs = [torch.zeros(4, 6).t() for _ in range(size)]
    dist.all_gather(outputs, torch.full((6, 4), float(rank)))
    assert all(torch.equal(out, torch.full((6, 4), float(i))) for i, out in enumerate(outputs))
    received = torch.zeros(5, 2).t()
    if rank == 0:
        dist.send(torch.arange(20.0).reshape(2, 10)[:, ::2], 1)
    elif rank == 1:
        dist.recv(received, 0)
        assert torch.equal(received, torch.arange(20.0).reshape(2, 10)[:, ::2])


def test_tensors_that_are_not_contiguous() -> None:
    run_ranks(2, layouts)


def parts_of_any_size() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    outputs = [torch.zeros(i + 1, 2) for i in range(size)]
    dist.all_gather(outputs, torch.full((rank + 1, 2), float(rank)))
    assert all(torch.equal(out, torch.full((i + 1, 2), float(i))) for i, out in enumerate(outputs))
    inputs = [torch.full((i, 2), float(rank)) for i in range(size)]
    output = torch.zeros(rank, 2)
    dist.reduce_scatter(output, inputs)
    assert torch.equal(output, torch.full((rank, 2), float(sum(range(size)))))
    sent = torch.full((size * (size + 1) // 2, 3), float(rank))
    received = torch.zeros((rank + 1) * size, 3)
    dist.all_to_all_single(received, sent, [rank + 1] * size, [i + 1 for i in range(size)])
    assert torch.equal(
        received, torch.arange(size).repeat_interleave(rank + 1).float()[:, None].expand(-1, 3)
    )
    objects: list[Any] = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * (1000 * rank)})
    assert [len(one["text"]) for one in objects] == [1000 * i for i in range(size)]
    handed = [("first", rank)]
    dist.broadcast_object_list(handed, 1)
    assert handed == [("first", 1)]
    mine: list[Any] = [None]
    dist.scatter_object_list(mine, [{"for": i} for i in range(size)] if rank == 0 else None, 0)
    assert mine == [{"for": rank}]


def test_parts_of_any_size_and_objects() -> None:
    run_ranks(3, parts_of_any_size)


def coalesced() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    tensors = [torch.full((i + 1,), float(rank)) for i in range(4)]
    with dist._coalescing_manager(device=torch.device("cpu"), async_ops=True) as manager:
        for tensor in tensors:
            dist.all_reduce(tensor)
    manager.wait()
    assert all(torch.equal(t, torch.full_like(t, sum(range(size)))) for t in tensors)
    outputs = [torch.zeros(size * (i + 1)) for i in range(3)]
    with dist._coalescing_manager(device=torch.device("cpu")):
        for i, output in enumerate(outputs):
            dist.all_gather_into_tensor(output, torch.full((i + 1,), float(rank)))
    assert all(
        torch.equal(out, torch.arange(size).repeat_interleave(i + 1).float())
        for i, out in enumerate(outputs)
    )
    received = torch.zeros(2)
    ring = [
        dist.P2POp(dist.isend, torch.full((2,), float(rank)), (rank + 1) % size),
        dist.P2POp(dist.irecv, received, (rank - 1) % size),
    ]
    for work in dist.batch_isend_irecv(ring):
        work.wait()
    assert torch.equal(received, torch.full((2,), float((rank - 1) % size)))


def test_coalesced_calls() -> None:
    run_ranks(3, coalesced)


def refusals() -> None:
    size = dist.get_world_size()
    cases: list[tuple[str, Callable[[], Any]]] = [
        ("no and of Float", lambda: dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND)),
        ("no average of Bool", lambda: dist.all_reduce(torch.ones(2).bool(), dist.ReduceOp.AVG)),
        ("4 elements, expected", lambda: dist.all_gather_into_tensor(torch.ones(4), torch.ones(3))),
        (
            "no equal parts",
            lambda: dist.all_to_all_single(torch.ones(2 * size + 1), torch.ones(2 * size + 1)),
        ),
    ]
    for text, call in cases:
        with pytest.raises(ValueError, match=text):
            call()
    tensor = torch.ones(2)
    dist.all_reduce(tensor)  # the group is as it was
    assert tensor.tolist() == [size, size]


def test_calls_that_have_no_meaning_are_refused_and_do_no_harm() -> None:
    run_ranks(2, refusals)


@pytest.mark.parametrize("body", [moves, reductions, parts_of_any_size, coalesced])
def test_the_same_between_hosts(body: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRIREME_TRANSPORT", "tcp")  # as ranks that share no memory
    run_ranks(3, body)
