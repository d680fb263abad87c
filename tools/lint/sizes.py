"""Sizes: files of at most 400 lines, functions of at most 60, a room's README of at most 40.

Functions of kernels/ are exempt: their inner loops are what they are.
"""

import ast
import re
from pathlib import Path

from source import Finding, code_only, repository_files

MAX_FILE = 400
MAX_FUNCTION = 60
MAX_ROOM_README = 40

CPP = (".h", ".cc", ".cu", ".cuh")
TYPE = re.compile(r"\b(namespace|class|struct|union|enum|concept)\b")
INITIALIZER = re.compile(r"(\w|>|=\s*|\breturn\s*|,\s*|\(\s*)$")
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def cpp_functions(text: str) -> list[tuple[int, int]]:
    """First and last line of every function body that is not inside another one.

    Expects formatted code. A brace opens a body where the text since the last ; { } has a parameter
    list and is neither a type nor a variable. Lambdas and blocks count with the function around
    them.
    """
    code = DIRECTIVE.sub(lambda match: re.sub(r"[^\n]", " ", match.group(0)), code_only(text))
    found: list[tuple[int, int]] = []
    open_braces: list[tuple[str, int]] = []  # what a brace is, and the line of a body's first
    before, line, is_inside = "", 1, False
    for character in code:
        line += character == "\n"
        if character == "{":
            kind = "inside" if is_inside else kind_of_brace(before)
            is_inside |= kind == "body"
            open_braces.append((kind, line))
            before = before if kind == "initializer" else ""
        elif character == "}" and open_braces:
            kind, start = open_braces.pop()
            if kind == "body":
                found.append((start, line))
                is_inside = False
            before = before + "{}" if kind == "initializer" else ""
        elif character == ";":
            before = ""
        else:
            before += character
    return found


def kind_of_brace(before: str) -> str:
    """What a brace after `before` opens outside of functions: `initializer`, `body` or `scope`."""
    if INITIALIZER.search(before):
        return "initializer"
    before = re.sub(r"\b(public|private|protected)\s*:", "", before)
    before = re.sub(r"template\s*<[^{}]*?>\s*(?=\w)", "", before)
    before = re.sub(r"operator\s*[^\s\w]+\s*(?=\()", "operator", before)
    head = before.split("(")[0]
    is_body = "(" in before and "=" not in head and not TYPE.search(head)
    return "body" if is_body else "scope"


def python_functions(text: str) -> list[tuple[int, int]]:
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    return [(node.lineno, node.end_lineno or node.lineno) for node in nodes]


def check_file(path: str, text: str) -> list[Finding]:
    findings = []
    is_code = path.endswith((*CPP, ".py", ".sh", ".cmake")) or path == "dev"
    num_lines = text.count("\n")
    if is_code and num_lines > MAX_FILE:
        findings.append(Finding(path, 0, f"{num_lines} lines; at most {MAX_FILE}"))
    if re.fullmatch(r"(trireme|packs)/.+/README\.md", path) and num_lines > MAX_ROOM_README:
        findings.append(Finding(path, 0, f"{num_lines} lines; a room's at most {MAX_ROOM_README}"))
    functions = []
    if path.endswith(CPP) and "/kernels/" not in path:
        functions = cpp_functions(text)
    elif path.endswith(".py"):
        functions = python_functions(text)
    for first, last in functions:
        length = last - first + 1
        if length > MAX_FUNCTION:
            findings.append(
                Finding(path, first, f"function of {length} lines; at most {MAX_FUNCTION}")
            )
    return findings


def check(root: Path) -> list[Finding]:
    findings = []
    for path in repository_files(root):
        if path.endswith((*CPP, ".py", ".sh", ".cmake", "README.md")) or path == "dev":
            findings += check_file(path, (root / path).read_text())
    return findings
