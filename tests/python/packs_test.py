"""Libraries of the packs; the program of docs/packs/python.md, run as it stands there, and the names of its table."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from trireme import _built, libraries

PAGE = (Path(__file__).parents[2] / "docs" / "packs" / "python.md").read_text()


def test_the_program_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    exec(program, {})
    assert re.search(r"tensor\(\[[02, 1]+\]\)", capsys.readouterr().out)


def test_names_are_there() -> None:
    found = re.findall(r"^\| (`trireme\.\w+\..*?) \|", PAGE, re.MULTILINE)
    assert len(found) == len(re.findall(r"^\| `", PAGE, re.MULTILINE)) > 10
    for cell in found:
        module, first = re.fullmatch(r"`(trireme\.\w+)\.(\w+)`.*", cell).groups()  # type: ignore[union-attr]
        names = [first, *re.findall(r"`(\w+)`", cell)]
        for name in names:
            name = f"BatchNorm{name}" if name in ("2d", "3d") else name
            assert hasattr(importlib.import_module(module), name), f"{module}.{name}"


def test_a_module_loads_its_own_library_alone() -> None:
    program = """
import sys, trireme
assert "torch" not in sys.modules
import trireme.vision
maps = open("/proc/self/maps").read()
print([pack for pack in ("vision", "speech", "text", "volume", "ranking") if f"libtrireme_{pack}" in maps])
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.stdout == "['vision']\n", done.stderr


def test_libraries_lie_beside_the_package_or_in_the_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert libraries.find("trireme_vision").exists()
    monkeypatch.setattr(
        libraries, "__file__", str(tmp_path / "python" / "trireme" / "libraries.py")
    )
    with pytest.raises(ImportError, match="there is no libtrireme_vision.so.* install the wheel"):
        libraries.find("trireme_vision")
    name = f"libtrireme_vision.so.{_built.LIBRARIES}"
    for folder in (tmp_path / "lib", tmp_path / "python" / "trireme" / "lib"):
        folder.mkdir(parents=True)
        (folder / name).touch()
        assert libraries.find("trireme_vision") == folder / name
