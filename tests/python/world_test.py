"""The ranks of a run, from Python."""

import re
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
