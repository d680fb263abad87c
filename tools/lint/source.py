"""What the rules share: findings, the repository's files, C++ without comments and strings."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Finding:
    """One violation. `line` is 0 where it concerns the whole file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else self.path
        return f"{place}: {self.message}"


def git(root: Path, *arguments: str) -> str:
    """Output of a git command; empty where it fails."""
    command = ["git", "-C", str(root), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def repository_files(root: Path) -> list[str]:
    """Tracked files and those that git does not ignore, sorted, from the root."""
    names = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    return sorted({name for name in names if name and (root / name).is_file()})


def changed_files(root: Path) -> tuple[list[str], str]:
    """Files that differ from the point where work began, and that point in words.

    The point is the merge base with origin/main; on a clean checkout of it, or without it, the
    commit before; without one, nothing: every file counts as changed.
    """
    head = git(root, "rev-parse", "-q", "--verify", "HEAD").strip()
    base = git(root, "merge-base", "HEAD", "origin/main").strip()
    is_clean = not git(root, "status", "--porcelain").strip()
    words = f"since the merge base with origin/main ({base[:9]})"
    if not base or (base == head and is_clean):
        base = git(root, "rev-parse", "-q", "--verify", "HEAD~1").strip()
        words = f"since HEAD~1 ({base[:9]})"
    files = repository_files(root)
    if not base:
        return files, "no earlier commit: all files"
    names = set(git(root, "diff", "--name-only", "-z", base).split("\0"))
    names |= set(git(root, "ls-files", "-z", "--others", "--exclude-standard").split("\0"))
    return [name for name in files if name in names], words


_TOKEN = re.compile(
    r"//[^\n]*"
    r"|/\*.*?\*/"
    r'|R"(?P<tag>[^()\s\\]*)\(.*?\)(?P=tag)"'
    r'|"(?:\\.|[^"\\\n])*"'
    r"|(?<!\w)'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


def code_only(text: str) -> str:
    """C++ text with comments, strings and characters blanked; lines stay where they are."""

    def blank(match: re.Match[str]) -> str:
        token = match.group(0)
        inner = re.sub(r"[^\n]", " ", token)
        return f'"{inner[1:-1]}"' if token[0] in '"R' else inner

    return _TOKEN.sub(blank, text)
