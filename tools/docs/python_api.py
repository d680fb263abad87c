"""A reference of the Python package, out of its sources: names, signatures, docstrings as they stand."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

# Modules beside what `trireme` itself offers, with their public names.
MODULES = (
    "vision",
    "speech",
    "text",
    "nn",
    "metrics",
    "ranking",
    "volume",
    "optim",
    "hugging_face",
    "lightning",
    "torch",
    "tensorflow",
    "config",
)

Definition = ast.FunctionDef | ast.ClassDef


def page(package: Path, modules: tuple[str, ...] = MODULES) -> str:
    """The page. package: the folder `trireme`; modules: those beside what it offers itself."""
    text = "# The Python package\n\nWhat `import trireme` offers, and the modules beside it.\n\n## trireme\n\n"
    stub = (package / "__init__.pyi").read_text()
    for module, name in re.findall(r"^from trireme\.(\w+) import (\w+) as \w+$", stub, re.M):
        definition = _definitions(_source(package, module)).get(name)
        if definition is not None:
            text += _entry(f"trireme.{name}", definition)
    for module in modules:
        text += _module(package, module)
    return text


def _module(package: Path, module: str) -> str:
    path = _source(package, module)
    tree = ast.parse(path.read_text())
    text = f"## trireme.{module}\n\n" + _block(ast.get_docstring(tree) or "")
    names = _public_names(tree)
    found = _imported(package, tree) | _definitions(path)
    for name in names:
        if name in found:
            text += _entry(f"trireme.{module}.{name}", found[name])
    return text


def _imported(package: Path, tree: ast.Module) -> dict[str, Definition]:
    """What the module has from others of the package."""
    found: dict[str, Definition] = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("trireme."):
            module = (node.module or "").removeprefix("trireme.").replace(".", "/")
            if not module.startswith("_"):
                defined = _definitions(_source(package, module))
                found |= {a.name: defined[a.name] for a in node.names if a.name in defined}
    return found


def _source(package: Path, module: str) -> Path:
    for candidate in (f"{module}.pyi", f"{module}.py", f"{module}/__init__.py"):
        if (package / candidate).is_file():
            return package / candidate
    raise FileNotFoundError(f"there is no module {module} in {package}")


def _public_names(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return sorted(ast.literal_eval(node.value))
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
    ]


def _definitions(path: Path) -> dict[str, Definition]:
    return {
        node.name: node
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


def _entry(name: str, node: Definition, level: str = "###") -> str:
    if _is_stub(node):
        return f"{level} {name}\n\n```python\n{ast.unparse(node)}\n```\n\n"
    text = f"{level} {name}\n\n```python\n{_signature(node)}\n```\n\n" + _block(
        ast.get_docstring(node) or ""
    )
    if isinstance(node, ast.ClassDef):
        for method in _methods(node):
            text += _entry(f"{name}.{method.name}", method, "####")
    return text


def _is_stub(node: Definition) -> bool:
    """A class of a compiled module: its stub is the whole of it."""
    return isinstance(node, ast.ClassDef) and all(
        isinstance(m, ast.AnnAssign | ast.Expr)
        or (isinstance(m, ast.FunctionDef) and _is_empty(m.body))
        for m in node.body
    )


def _is_empty(body: list[ast.stmt]) -> bool:
    """Dots, or a docstring alone."""
    return (
        len(body) == 1 and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
    )


def _methods(node: ast.ClassDef) -> Iterator[ast.FunctionDef]:
    for method in node.body:
        if isinstance(method, ast.FunctionDef) and not method.name.startswith("_"):
            yield method


def _signature(node: Definition) -> str:
    if isinstance(node, ast.FunctionDef):
        returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
        return f"def {node.name}({ast.unparse(node.args)}){returns}"
    made = next(
        (m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None
    )
    return (
        f"class {node.name}({ast.unparse(made.args).removeprefix('self').lstrip(', ')})"
        if made
        else f"class {node.name}"
    )


def _block(docstring: str) -> str:
    return f"````text\n{docstring}\n````\n\n" if docstring else ""
