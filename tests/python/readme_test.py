"""The programs of python/README.md, run as they stand there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "python" / "README.md"
PROGRAMS = [
    code
    for code in re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    if "ranks=" in code
]


def test_there_are_programs() -> None:
    assert len(PROGRAMS) == 2


@pytest.mark.parametrize("index", range(2))
def test_a_program_of_the_readme_runs(index: int, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAMS[index])
    done = subprocess.run(
        [sys.executable, str(program)],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
        env={**os.environ, "TRIREME_LOG": "error"},
    )
    assert done.returncode == 0, done.stderr
    if index == 0:
        assert done.stdout.splitlines()[-1].startswith("99 ")
