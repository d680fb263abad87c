"""Names: no two types of one namespace have the same name in different files, and no two headers of
different rooms a type of the same name.

Of the first, each would be compiled by itself, and the linker keep one of their functions for both.
The second are two things that a reader takes for one.
"""

import re
from pathlib import Path

from rooms import TABLE, Rooms, read_table
from source import Finding, code_only, repository_files

CPP = (".h", ".cc", ".cu", ".cuh")
HEADERS = (".h", ".cuh")
PUBLIC = "include/"
ROOTS = (PUBLIC, "packs/", "recipes/", "trireme/")

# A public value has the name of the type that it holds.
HELD = frozenset({"Graph", "Plan", "Profile", "Topology", "World"})

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


def check_files(texts: dict[str, str]) -> list[Finding]:
    """Full names of types that several of the files define."""
    first: dict[str, str] = {}
    findings = []
    for path, text in texts.items():
        for name, line in defined_types(text):
            other = first.setdefault(name, path)
            if other != path:
                findings.append(Finding(path, line, f"{name} is defined in {other} too"))
    return findings


def check_rooms(headers: dict[str, str], rooms: Rooms) -> list[Finding]:
    """Names of types that headers of several rooms define; the public headers count as a room."""
    first: dict[str, tuple[str | None, str]] = {}
    findings = []
    for path, text in headers.items():
        room = PUBLIC if path.startswith(PUBLIC) else rooms.of_path(path)
        for full_name, line in defined_types(text):
            name = full_name.rpartition("::")[2]
            other, other_path = first.setdefault(name, (room, path))
            if other != room and not (name in HELD and PUBLIC in (room, other)):
                message = f"{name} is a type of another room too: {other_path}"
                findings.append(Finding(path, line, message))
    return findings


def check(root: Path) -> list[Finding]:
    paths = [path for path in repository_files(root) if path.startswith(ROOTS)]
    texts = {path: (root / path).read_text() for path in paths if path.endswith(CPP)}
    headers = {path: text for path, text in texts.items() if path.endswith(HEADERS)}
    try:
        table = read_table((root / TABLE).read_text())
    except ValueError:
        return check_files(texts)  # rooms.py says what is wrong with the table
    return check_files(texts) + check_rooms(headers, table)
