"""Writes python/trireme/_core.pyi and _packs.pyi, the types of the compiled modules, from what they say of themselves.

PYTHONPATH=build/dev/python .venv/bin/python tools/python/make_stub.py [--check]
"""

import ast
import importlib
import multiprocessing
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "python" / "trireme"
MODULES = {
    "_core": "The engine: include/trireme for Python.",
    "_packs": "The packs: metrics of arrays and optimizers of tensors.",
}

_ENUM = re.compile(
    r"^class (\w+):\n    __members__.*?(?=^class |^def |\Z)", re.MULTILINE | re.DOTALL
)


def main() -> int:
    import torch  # noqa: F401  its libraries come before the modules'
    from mypy import stubgen  # noqa: F401  it sets another start method

    multiprocessing.set_start_method("fork")  # a process without torch could not import them
    is_checked = "--check" in sys.argv
    stale = []
    for module in MODULES:
        stub, made = FOLDER / f"{module}.pyi", generate(module)
        if not is_checked:
            stub.write_text(made)
        elif stub.read_text() != made:
            stale.append(str(stub.relative_to(ROOT)))
    if stale:
        print(
            f"not what the modules say: {', '.join(stale)}; run {Path(__file__).relative_to(ROOT)}"
        )
    return 1 if stale else 0


def generate(module: str) -> str:
    from mypy.stubgen import main as stubgen

    with tempfile.TemporaryDirectory() as folder:
        stubgen(["-q", "-m", f"trireme.{module}", "-o", folder, "--inspect-mode"])
        text = (Path(folder) / "trireme" / f"{module}.pyi").read_text()
    text = document(f'"""{MODULES[module]}"""\n\n' + simplify(text), module)
    return format_text(text, module)


def simplify(text: str) -> str:
    """Types as one would write them by hand."""
    text = _ENUM.sub(_enum, text)
    text = text.replace("typing.SupportsInt | typing.SupportsIndex", "int")
    text = text.replace("typing.SupportsFloat | typing.SupportsIndex", "float")
    text = text.replace("os.PathLike | str | bytes", "os.PathLike[str] | str")
    text = re.sub(r"typing\.Annotated\[(numpy\.typing\.ArrayLike), [\w.]+\]", r"\1", text)
    text = re.sub(
        r"\bcollections\.abc\.Callable\b(?!\[)", "collections.abc.Callable[..., object]", text
    )
    text = text.replace("from typing import ClassVar, overload", "from typing import overload")
    return re.sub(r"^import typing\n", "", text, flags=re.MULTILINE)


def _enum(found: re.Match[str]) -> str:
    name, names = found[1], re.findall(r"^    (\w+): ClassVar\[\w+\] = ", found[0], re.MULTILINE)
    members = "".join(f"    {member}: {name}\n" for member in names if not member.startswith("_"))
    return f"class {name}:\n{members}    @property\n    def name(self) -> str: ...\n\n"


def document(text: str, module: str) -> str:
    """The stub with what the module's classes say of themselves."""
    compiled = importlib.import_module(f"trireme.{module}")
    tree = ast.parse(text)
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or hasattr(
            getattr(compiled, node.name), "__members__"
        ):
            continue
        described = getattr(compiled, node.name)
        node.body = [part for part in node.body if not _is_no_constructor(part)] or [
            ast.Expr(ast.Constant(...))
        ]
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name != "__init__":
                _describe(method, getattr(described, method.name))
        _describe(node, described)
    return ast.unparse(tree)


def _is_no_constructor(part: ast.stmt) -> bool:
    """What every class has that Python cannot make."""
    return ast.unparse(part).startswith("def __init__(self, *args, **kwargs)")


def _describe(node: ast.ClassDef | ast.FunctionDef, described: object) -> None:
    """Puts the docstring, less the signature that pybind11 begins it with, before the node's body."""
    text = re.sub(r"^\w*\(.*\)( -> .*)?$", "", described.__doc__ or "", flags=re.MULTILINE).strip()
    if not text or text.startswith(("Initialize self", "Overloaded function")):
        return
    text = "\n".join(textwrap.wrap(text, 100))
    is_empty = isinstance(node, ast.FunctionDef)  # its body is `...`
    node.body = [ast.Expr(ast.Constant(text)), *([] if is_empty else node.body)]


def format_text(text: str, module: str) -> str:
    for words in (["check", "-q", "--select", "I", "--fix"], ["format", "-q"]):
        ruff = [
            str(ROOT / ".venv/bin/ruff"),
            *words,
            "--stdin-filename",
            str(FOLDER / f"{module}.pyi"),
            "-",
        ]
        text = subprocess.run(ruff, input=text, capture_output=True, text=True, check=True).stdout
    return text


if __name__ == "__main__":
    sys.exit(main())
