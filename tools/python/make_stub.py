"""Writes python/trireme/_core.pyi, the types of the compiled module, from what the module says of itself.

PYTHONPATH=build/dev/python .venv/bin/python tools/python/make_stub.py [--check]
"""

import multiprocessing
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STUB = ROOT / "python" / "trireme" / "_core.pyi"

_ENUM = re.compile(
    r"^class (\w+):\n    __members__.*?(?=^class |^def |\Z)", re.MULTILINE | re.DOTALL
)


def main() -> int:
    made = generate()
    if "--check" in sys.argv:
        if STUB.read_text() == made:
            return 0
        print(
            f"{STUB.relative_to(ROOT)} is not what the module says; run {Path(__file__).relative_to(ROOT)}"
        )
        return 1
    STUB.write_text(made)
    return 0


def generate() -> str:
    import torch  # noqa: F401  its libraries come before the module's
    from mypy.stubgen import main as stubgen

    multiprocessing.set_start_method("fork")  # a process without torch could not import the module
    with tempfile.TemporaryDirectory() as folder:
        stubgen(["-q", "-m", "trireme._core", "-o", folder, "--inspect-mode"])
        text = (Path(folder) / "trireme" / "_core.pyi").read_text()
    return format_text('"""The engine: include/trireme for Python."""\n\n' + simplify(text))


def simplify(text: str) -> str:
    """Types as one would write them by hand."""
    text = _ENUM.sub(_enum, text)
    text = text.replace("typing.SupportsInt | typing.SupportsIndex", "int")
    text = text.replace("typing.SupportsFloat | typing.SupportsIndex", "float")
    text = text.replace("os.PathLike | str | bytes", "os.PathLike[str] | str")
    text = text.replace("(self, *args, **kwargs) -> None", "(self) -> None")
    text = text.replace("from typing import ClassVar, overload", "from typing import overload")
    return re.sub(r"^import typing\n", "", text, flags=re.MULTILINE)


def _enum(found: re.Match[str]) -> str:
    name, names = found[1], re.findall(r"^    (\w+): ClassVar\[\w+\] = ", found[0], re.MULTILINE)
    members = "".join(f"    {member}: {name}\n" for member in names if not member.startswith("_"))
    return f"class {name}:\n{members}    @property\n    def name(self) -> str: ...\n\n"


def format_text(text: str) -> str:
    for words in (["check", "-q", "--select", "I", "--fix"], ["format", "-q"]):
        ruff = [str(ROOT / ".venv/bin/ruff"), *words, "--stdin-filename", str(STUB), "-"]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    sys.exit(main())
