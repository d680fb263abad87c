"""What the others see when a rank is killed, late, aborts a group, forks, or leaves."""

import os
import re
import signal
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import trireme.torch
from ranks import run_ranks, soon

Wait = Callable[[], Any]


def in_all_reduce() -> None:
    dist.all_reduce(torch.ones(100_000))


def in_work() -> None:
    work = dist.all_gather_into_tensor(torch.ones(30), torch.ones(10), async_op=True)
    work.wait()


def in_recv() -> None:
    dist.recv(torch.ones(5), 1)


def in_future() -> None:
    dist.all_reduce(torch.ones(10), async_op=True).get_future().wait()


def killed_at_once(wait: Wait) -> tuple[float, str] | None:
    """Rank 1 is killed while the others wait; how long after, and by which error they end."""
    dist.barrier()
    if dist.get_rank() == 1:
        time.sleep(0.5)
        os.kill(os.getpid(), signal.SIGKILL)
    start = time.monotonic()
    with pytest.raises(dist.DistBackendError) as raised:
        wait()
    return time.monotonic() - start - 0.5, str(raised.value)


@pytest.mark.parametrize(
    ("wait", "operation"),
    [(in_all_reduce, "all_reduce"), (in_work, "all_gather"), (in_recv, "")],
)
def test_a_killed_rank_is_named_with_operation_and_line(wait: Wait, operation: str) -> None:
    results = run_ranks(3, killed_at_once, wait)
    assert results[1] is None
    for seconds, text in (results[0], results[2]):
        assert seconds < soon()
        assert "rank 1 is lost" in text
        assert operation in text
        assert re.search(rf"faults_test\.py:\d+, in {wait.__name__}", text), text


def killed_before_a_backward(with_hook: bool) -> str | None:
    model = DistributedDataParallel(nn.Linear(100, 100))
    if with_hook:
        trireme.torch.register_ddp_hook(model)
    loss = model(torch.ones(1, 100)).sum()
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(dist.DistBackendError) as raised:
        loss.backward()
    return str(raised.value)


@pytest.mark.parametrize("with_hook", [False, True])
def test_a_backward_of_ddp_names_the_killed_rank(with_hook: bool) -> None:
    text, _ = run_ranks(2, killed_before_a_backward, with_hook)
    assert "rank 1 is lost" in text
    assert "all_reduce" in text
    if with_hook:  # else a future's error has no line of Python
        assert re.search(r"faults_test\.py:\d+, in killed_before_a_backward", text), text


def killed_before_futures() -> str | None:
    dist.barrier()
    if dist.get_rank() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(RuntimeError) as raised:
        in_future()
    return str(raised.value)


def test_a_future_fails_with_its_work() -> None:
    text, _ = run_ranks(2, killed_before_futures)
    assert "rank 1 is lost" in text


def late_in_one_group() -> None:
    rank = dist.get_rank()
    pair = dist.new_group([0, 1], timeout=timedelta(seconds=0.3))
    if rank == 0:
        start = time.monotonic()
        with pytest.raises(dist.DistBackendError, match="Timed out waiting") as raised:
            dist.all_reduce(torch.ones(3), group=pair)
        assert 0.2 < time.monotonic() - start < soon()
        assert "rank 1" in str(raised.value)
        with pytest.raises(dist.DistBackendError):  # it stays as it is
            dist.barrier(group=pair)
    everybody = torch.ones(2)
    dist.all_reduce(everybody)
    assert everybody.tolist() == [3, 3]


def test_a_timeout_ends_one_group_alone() -> None:
    run_ranks(3, late_in_one_group)


def late_in_one_call() -> None:
    work = None
    if dist.get_rank() == 0:
        work = dist.barrier(async_op=True)
        assert not work.is_completed()
        with pytest.raises(dist.DistBackendError, match="has not ended within the 100 ms"):
            work.wait(timedelta(milliseconds=100))
    dist.monitored_barrier(timeout=timedelta(seconds=20))
    if work is None:
        work = dist.barrier(async_op=True)
    work.wait()
    assert work.is_completed()


def test_a_wait_may_end_before_its_work() -> None:
    run_ranks(2, late_in_one_call)


def aborted() -> None:
    rank = dist.get_rank()
    aborts = dist.new_group([0, 1])
    dist.barrier()
    if rank == 0:
        time.sleep(0.2)
        aborts.abort()
    elif rank == 1:
        with pytest.raises(dist.DistBackendError, match="rank 0"):
            dist.all_reduce(torch.ones(3), group=aborts)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == 3


def test_an_abort_ends_one_group_alone() -> None:
    run_ranks(3, aborted)


def missing_at_a_monitored_barrier() -> None:
    if dist.get_rank() == 0:
        with pytest.raises(RuntimeError, match="Ranks 1, 2 failed to pass monitoredBarrier"):
            dist.monitored_barrier(timeout=timedelta(seconds=0.2), wait_all_ranks=True)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == 3


def test_a_monitored_barrier_does_no_harm() -> None:
    run_ranks(3, missing_at_a_monitored_barrier)


def forked() -> None:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            dist.all_reduce(torch.ones(1))
            text = "nothing was raised"
        except dist.DistBackendError as error:
            text = str(error)
        os.write(write, text.encode())
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert b"forked from rank" in os.read(read, 10_000)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == 2


def test_a_forked_process_is_refused_and_its_parent_goes_on() -> None:
    run_ranks(2, forked)


def left_early() -> str | None:
    if dist.get_rank() == 1:
        dist.destroy_process_group()
        return None
    with pytest.raises(dist.DistBackendError) as raised:
        dist.all_reduce(torch.ones(4))
    return str(raised.value)


def test_a_rank_that_leaves_is_named() -> None:
    text, _ = run_ranks(2, left_early)
    assert "rank 1" in text


def counting_beside_a_wait() -> None:
    """The interpreter runs while a thread of it waits for the others."""
    if dist.get_rank() == 1:
        time.sleep(0.4)
        dist.barrier()
        return
    counts = 0
    has_ended = threading.Event()

    def wait() -> None:
        dist.barrier()
        has_ended.set()

    waiting = threading.Thread(target=wait)
    waiting.start()
    while not has_ended.wait(0.001):
        counts += 1
    waiting.join()
    assert counts > 20


def test_waiting_does_not_hold_the_interpreter() -> None:
    run_ranks(2, counting_beside_a_wait)


def dropped_handles() -> None:
    """A message whose work and tensor the caller has let go, while its receiver is late."""
    rank = dist.get_rank()
    if rank == 0:
        dist.isend(torch.arange(100_000.0), 1)
        others = [torch.zeros(100_000) for _ in range(20)]  # would have its memory
        assert all(other.sum() == 0 for other in others)
    else:
        time.sleep(0.2)
        tensor = torch.empty(100_000)
        dist.recv(tensor, 0)
        assert torch.equal(tensor, torch.arange(100_000.0))
    for _ in range(200):
        dist.all_reduce(torch.ones(1000), async_op=True)
    dist.barrier()


def test_tensors_stay_until_their_works_end() -> None:
    run_ranks(2, dropped_handles)


def futures() -> None:
    size = dist.get_world_size()
    works = [dist.all_reduce(torch.full((3,), float(i)), async_op=True) for i in range(20)]
    doubled = [work.get_future().then(lambda done: done.value()[0] * 2) for work in works]
    for i, future in enumerate(doubled):
        assert future.wait().tolist() == [2.0 * size * i] * 3
    nested = dist.all_reduce(torch.ones(2), async_op=True).get_future()
    chained = nested.then(
        lambda done: dist.all_reduce(done.value()[0], async_op=True).get_future().wait()[0]
    )
    assert chained.wait().tolist() == [size * size] * 2
    work = dist.all_reduce(torch.ones(2), async_op=True)
    work.wait()
    assert work.get_future().done()


def test_futures_and_their_callbacks() -> None:
    run_ranks(2, futures)


def any_source() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    if rank != 0:
        dist.send(torch.full((2,), float(rank)), 0, tag=7)
        return
    seen = []
    for _ in range(size - 1):
        tensor = torch.zeros(2)
        source = dist.recv(tensor, tag=7)
        assert tensor.tolist() == [source, source]
        seen.append(source)
    assert sorted(seen) == list(range(1, size))


def test_a_recv_from_any_rank_says_from_which() -> None:
    run_ranks(3, any_source)


def groups() -> None:
    rank, size = dist.get_rank(), dist.get_world_size()
    everybody = dist.new_group()
    tensor = torch.ones(1)
    dist.all_reduce(tensor, group=everybody)
    assert tensor.item() == size
    part = dist.split_group(split_ranks=[[0, 1], [2]])
    tensor = torch.tensor([float(rank)])
    dist.all_reduce(tensor, group=part)
    assert tensor.item() == (1 if rank < 2 else 2)
    assert dist.get_world_size(part) == (2 if rank < 2 else 1)
    dist.destroy_process_group(part)
    for _ in range(3):  # groups come and go
        pair = dist.new_group([0, 2])
        if rank != 1:
            dist.barrier(group=pair)
            dist.destroy_process_group(pair)
    dist.barrier()


def test_groups_are_made_split_and_destroyed() -> None:
    run_ranks(3, groups)


def only_a_subgroup() -> None:
    """The default group is another backend's."""
    pair = dist.new_group([0, 2], backend="trireme")
    if dist.get_rank() != 1:
        tensor = torch.ones(1)
        dist.all_reduce(tensor, group=pair)
        assert tensor.item() == 2


def test_a_group_beside_a_default_group_of_gloo() -> None:
    run_ranks(3, only_a_subgroup, backend="gloo")


def again() -> None:
    path = os.environ["AGAIN"]
    dist.destroy_process_group()
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.FileStore(path, size)
    dist.init_process_group("cpu:trireme", store=store, rank=rank, world_size=size)
    tensor = torch.ones(1)
    dist.all_reduce(tensor)
    assert tensor.item() == size


def test_a_process_group_can_be_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGAIN", str(tmp_path / "store"))
    run_ranks(2, again)
