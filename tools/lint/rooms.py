"""Room arrows: an #include line or a USES list may only follow trireme/rooms.txt.

Also keeps vendors' headers where they belong: torch above kernels and plan; CUDA, NCCL and
libfabric in their folders.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from source import Finding, repository_files

TABLE = "trireme/rooms.txt"
ROOTS = ("trireme/", "packs/", "recipes/", "cli/", "benchmarks/kernels/", "benchmarks/wire/")
PUBLIC = re.compile(r"trireme/\w+\.h")  # in include/
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
CALL = re.compile(r"trireme_(?:room|tests|program)\(\s*([^\s)]+)([^)]*)\)")
KEYWORDS = {
    *("SOURCES", "LOOPS", "CUDA", "NO_CUDA", "HEADERS", "USES", "LIBRARIES"),
    *("TESTS", "TEST_USES", "TEST_TOGETHER", "TOGETHER", "CUDA_TESTS", "FUZZ", "LABEL"),
}

# Header prefix -> folders that may include it, as patterns over the file's path.
TORCH_FOLDERS = re.compile(
    r"include/|trireme/(engine|launch|session|command)/|packs/\w+/(evaluation|operators|models)/|recipes/|cli/|python/|examples/|benchmarks/"
    r"|tests/packs/\w+/(evaluation|operators|models)/|tests/(engine|launch|session|command|habits|models|random_nets|rank_program|world_program|recipes|examples)/|cmake/"
)
VENDORS = (
    (re.compile(r"(ATen|c10|torch|caffe2)/"), TORCH_FOLDERS),
    (re.compile(r"(cuda|cublas|cudnn|cufft)\w*\.h|cuda/"), re.compile(r".*/cuda/")),
    (re.compile(r"nccl\.h"), re.compile(r".*/nccl/")),
    (re.compile(r"rdma/"), re.compile(r".*/ofi/")),
    (re.compile(r"(arrow|parquet)/"), re.compile(r"trireme/data/arrow/")),
    (re.compile(r"curl/|pugixml"), re.compile(r"trireme/remote/")),
    (re.compile(r"hwloc"), re.compile(r"trireme/engine/measure/host_parts\.cc")),
    (re.compile(r"liburing"), re.compile(r"trireme/data/read_ring\.cc")),
    (re.compile(r"(sndfile|soxr)\.h"), re.compile(r"packs/speech/data/|tests/packs/speech/data/")),
)


@dataclass(frozen=True)
class Rooms:
    """The table. `uses` is already the transitive closure."""

    uses: dict[str, frozenset[str]]

    def of_path(self, path: str) -> str | None:
        """The room that holds a file: the longest room name its path starts with."""
        inner = path.removeprefix("trireme/")
        found = [room for room in self.uses if inner.startswith(room + "/")]
        return max(found, key=len, default=None)

    def may_use(self, room: str, other: str) -> bool:
        return other in (room, "base") or other in self.uses[room]


def read_table(text: str) -> Rooms:
    """Parses rooms.txt. Raises ValueError, naming the line, where a room uses one not above it."""
    uses: dict[str, frozenset[str]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        room, direct = words[0], words[1:]
        if direct == ["*"]:
            direct = list(uses)
        unknown = [other for other in direct if other not in uses]
        if room in uses or unknown:
            reason = (
                "is listed twice" if room in uses else f"uses {unknown[0]}, not listed above it"
            )
            raise ValueError(f"line {number}: {room} {reason}")
        uses[room] = frozenset(direct).union(*(uses[other] for other in direct))
    return Rooms(uses)


def check_includes(path: str, text: str, rooms: Rooms) -> list[Finding]:
    findings = []
    room = rooms.of_path(path) if path.startswith(ROOTS) else None
    if path.startswith(("trireme/", "packs/")) and room is None:
        return [Finding(path, 0, f"its folder is no room of {TABLE}")]
    for number, line in enumerate(text.splitlines(), 1):
        match = INCLUDE.match(line)
        if not match:
            continue
        header = match.group(2)
        for vendor, folders in VENDORS:
            if vendor.match(header) and not folders.match(path):
                findings.append(Finding(path, number, f"<{header}> does not belong here"))
        is_public = path.startswith("include/")
        if match.group(1) == "<" or (room is None and not is_public):
            continue
        if PUBLIC.fullmatch(header):
            continue
        if room is None:
            findings.append(Finding(path, number, f'"{header}" is not public'))
            continue
        other = rooms.of_path(header) if header.startswith(ROOTS) else None
        if other is None:
            findings.append(
                Finding(path, number, f'"{header}" is in no room; write it from the root')
            )
        elif not rooms.may_use(room, other):
            findings.append(Finding(path, number, f"{room} may not use {other} ({TABLE})"))
    return findings


def words_of(arguments: str, keyword: str) -> list[str]:
    """What follows `keyword` in the arguments of a CMake call."""
    words, found, inside = re.sub(r"#[^\n]*", "", arguments).split(), [], False
    for word in words:
        if word in KEYWORDS:
            inside = word == keyword
        elif inside:
            found.append(word)
    return found


def check_links(path: str, text: str, rooms: Rooms) -> list[Finding]:
    """The link lists of a CMakeLists.txt."""
    findings = []
    for match in CALL.finditer(text):
        number = text.count("\n", 0, match.start()) + 1
        folder = rooms.of_path(path)
        room = match.group(1) if match.group(1) in rooms.uses else folder
        if room is None:
            continue
        if room != folder:
            findings.append(Finding(path, number, f"declares {room}, but lies in {folder}"))
        for other in words_of(match.group(2), "USES"):
            if other in rooms.uses and not rooms.may_use(room, other):
                findings.append(Finding(path, number, f"{room} may not link {other} ({TABLE})"))
            elif other not in rooms.uses and not other.startswith(("tests/", "${")):
                findings.append(Finding(path, number, f"{other} is no room of {TABLE}"))
    return findings


def needs_readme(room: str, path: str) -> bool:
    """Rooms of the core; of a pack the first folder, whose README covers its operators."""
    return path.startswith("trireme/") or (room.startswith("packs/") and room.count("/") == 1)


def check(root: Path) -> list[Finding]:
    try:
        rooms = read_table((root / TABLE).read_text())
    except ValueError as error:
        return [Finding(TABLE, 0, str(error))]
    findings = []
    for path in repository_files(root):
        if path.endswith((".h", ".cc", ".cu", ".cuh")):
            findings += check_includes(path, (root / path).read_text(), rooms)
        elif path.startswith(ROOTS) and path.endswith("CMakeLists.txt"):
            findings += check_links(path, (root / path).read_text(), rooms)
            room = rooms.of_path(path)
            if (
                room
                and needs_readme(room, path)
                and not (root / path).with_name("README.md").exists()
            ):
                findings.append(Finding(path, 0, f"room {room} has no README.md"))
    return findings
