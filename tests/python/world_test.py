"""The ranks of a run, from Python."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import trireme


def test_a_process_alone_is_a_world_of_one() -> None:
    world = trireme.World()
    assert (world.rank, world.size) == (0, 1)


def test_modules_for_another_torch_are_refused() -> None:
    program = "from trireme import _built; _built.TORCH = '2.11.0'; import trireme; trireme.Session"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert "ImportError: trireme was built for torch 2.11.0, and this is torch" in done.stderr


def test_names_have_types() -> None:
    """__init__.pyi has the names that __init__.py loads."""
    stub = (Path(trireme.__file__).parent / "__init__.pyi").read_text()
    typed = re.findall(r"^from trireme\.(\w+) import (\w+) as \w+$", stub, re.MULTILINE)
    assert {name: module for module, name in typed} == trireme._PLACES
    for name in trireme.__all__:
        assert getattr(trireme, name) is not None


def test_importing_the_package_loads_no_torch() -> None:
    program = "import sys, trireme; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", program], check=True)


POOLED = """
import os, sys, torch, trireme

for port in sys.argv[1:]:
    os.environ["MASTER_PORT"] = port
    numbers = torch.tensor([trireme.rank() + 1.0])
    trireme.init().all_reduce(numbers)
    print(trireme.size(), numbers.item())
    trireme.shutdown()
    trireme.shutdown()
"""


def test_workers_of_a_pool_meet_again() -> None:
    with socket.socket() as first, socket.socket() as second:
        first.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        ports = [str(place.getsockname()[1]) for place in (first, second)]
    place = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1"}
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", POOLED, *ports],
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | place | {"RANK": str(rank)},
        )
        for rank in range(2)
    ]
    for worker in workers:
        assert worker.communicate(timeout=60)[0] == "2 3.0\n2 3.0\n"
        assert worker.returncode == 0
