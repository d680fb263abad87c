"""Lists: every source, test and fuzz target is named in its CMakeLists.txt, and a room's header.

A source that no list names would be neither compiled nor run, and nobody would notice.
"""

import re
from pathlib import Path

from source import Finding, repository_files

LISTED = re.compile(
    r"(trireme|packs|recipes)/.*\.(h|cuh)$|(trireme|packs|tests|benchmarks|cli|recipes|examples)/.*\.(cc|cu)$"
)


def listing_of(path: str, lists: dict[str, set[str]]) -> tuple[str, str] | None:
    """The CMakeLists.txt responsible for a file, and the name it must have there."""
    parts = path.split("/")
    inner = parts[1:] if parts[0] == "tests" else parts
    is_test = parts[0] == "tests"
    for length in range(len(inner) - 1, 0, -1):
        folder = "/".join(inner[:length])
        places = [f"trireme/{folder}", folder, f"tests/{folder}"] if is_test else [folder]
        for place in places:
            if f"{place}/CMakeLists.txt" in lists:
                return f"{place}/CMakeLists.txt", "/".join(inner[length:])
    if is_test and "tests/CMakeLists.txt" in lists:
        return "tests/CMakeLists.txt", "/".join(inner)
    return None


def check_paths(paths: list[str], lists: dict[str, set[str]]) -> list[Finding]:
    """`lists` holds the words of each CMakeLists.txt."""
    findings = []
    for path in paths:
        if not LISTED.match(path):
            continue
        listing = listing_of(path, lists)
        if listing is None:
            findings.append(Finding(path, 0, "no CMakeLists.txt is responsible for it"))
        elif listing[1] not in lists[listing[0]]:
            findings.append(Finding(path, 0, f"{listing[0]} does not list {listing[1]}"))
    return findings


def check(root: Path) -> list[Finding]:
    paths = repository_files(root)
    lists = {}
    for path in paths:
        if path.endswith("CMakeLists.txt"):
            text = re.sub(r"#[^\n]*", "", (root / path).read_text())
            lists[path] = set(re.split(r"[\s()]+", text))
    return check_paths(paths, lists)
