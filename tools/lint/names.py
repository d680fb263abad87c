"""Names: no two types of one namespace have the same name in different files.

Each would be compiled by itself, and the linker keep one of their functions for both.
"""

import re
from pathlib import Path

from source import Finding, code_only, repository_files

CPP = (".h", ".cc", ".cu", ".cuh")
TEMPLATE = re.compile(r"\btemplate\s*<[^{};]*?>\s*(?=(struct|class|union|concept|requires)\b)")
NAMESPACE = re.compile(r"\bnamespace\s+([\w:]+)\s*$")
TYPE = re.compile(
    r"\b(?:struct|class|union|enum|enum\s+class)\s+([A-Za-z_]\w*(?:::\w+)*)\s*"
    r"(?:final\s*)?(?::(?!:)|$)"
)
DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)


def defined_types(text: str) -> list[tuple[str, int]]:
    """Full names of the types that a file defines in named namespaces, with their lines."""
    found: list[tuple[str, int]] = []
    scopes: list[str | None] = []  # names of open namespaces; None: any other brace
    before, line = "", 1
    code = DIRECTIVE.sub(lambda match: "\n" * match[0].count("\n"), code_only(text))
    for character in code:
        line += character == "\n"
        if character == "{":
            head = TEMPLATE.sub("", before).strip()
            namespace = NAMESPACE.search(head)
            own = TYPE.search(head)
            is_type = own and "(" not in head[: own.start()] and "=" not in head
            if is_type and own and None not in scopes:
                found.append(("::".join([*[scope or "" for scope in scopes], own[1]]), line))
            scopes.append(namespace[1] if namespace else None)
            before = ""
        elif character == "}":
            if scopes:
                scopes.pop()
            before = ""
        elif character == ";":
            before = ""
        else:
            before += character
    return found


def check(root: Path) -> list[Finding]:
    first: dict[str, str] = {}
    findings = []
    for path in repository_files(root):
        if not path.endswith(CPP) or not path.startswith(("trireme/", "packs/")):
            continue
        for name, line in defined_types((root / path).read_text()):
            other = first.setdefault(name, path)
            if other != path:
                findings.append(Finding(path, line, f"{name} is defined in {other} too"))
    return findings
