"""Rules that run a compiler: each header compiles alone; clang-tidy over each source.

Both remember what passed (.cache/lint), by the content of the file, of what it includes from this
repository, and of the command.
"""

import hashlib
import json
import os
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rooms import TORCH_FOLDERS
from source import Finding

INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.M)
TORCH_INCLUDE = re.compile(r"^\s*#\s*include\s*<(ATen|c10|torch)/", re.M)
ARROW_INCLUDE = re.compile(r"^\s*#\s*include\s*<(arrow|parquet)/", re.M)
CUDA_INCLUDE = re.compile(r"^\s*#\s*include\s*<(cuda\w*|nccl)\.h>", re.M)


@dataclass(frozen=True)
class Job:
    """One command over one file; it must succeed."""

    path: str
    command: list[str]
    stdin: str
    key: str


class Sources:
    """Reads the repository's sources, with what they include from it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._included: dict[str, frozenset[str]] = {}

    def included(self, path: str) -> frozenset[str]:
        """`path` and all files of the repository that it includes, however deep."""
        if path not in self._included:
            self._included[path] = frozenset([path])  # ends a cycle of includes
            text = (self.root / path).read_text()
            found = (self.find(name) for name in INCLUDE.findall(text))
            direct = [name for name in found if name is not None]
            self._included[path] = frozenset([path]).union(
                *(self.included(name) for name in direct)
            )
        return self._included[path]

    def find(self, name: str) -> str | None:
        """The file that an #include means; None for one from outside."""
        for path in (name, f"include/{name}"):
            if (self.root / path).is_file():
                return path
        return None

    def needs_torch(self, path: str) -> bool:
        if TORCH_FOLDERS.match(path):
            return True
        return self._includes(path, TORCH_INCLUDE)

    def needs_arrow(self, path: str) -> bool:
        return self._includes(path, ARROW_INCLUDE)

    def needs_cuda(self, path: str) -> bool:
        return self._includes(path, CUDA_INCLUDE)

    def _includes(self, path: str, header: re.Pattern[str]) -> bool:
        texts = ((self.root / name).read_text() for name in self.included(path))
        return any(header.search(text) for text in texts)

    def key(self, path: str, command: list[str]) -> str:
        digest = hashlib.sha256("\0".join(command).encode())
        for name in sorted(self.included(path)):
            digest.update(name.encode() + b"\0" + (self.root / name).read_bytes())
        return digest.hexdigest()


def header_jobs(sources: Sources, paths: list[str], build: Path) -> list[Job]:
    """Compiles an empty unit that includes nothing but the header.

    Those that need CUDA or Arrow are left out where it is absent.
    """
    plain, with_torch, with_cuda, with_arrow = (
        (build / "lint_commands.txt").read_text().splitlines()
    )
    jobs = []
    for path in paths:
        if path.endswith(".h"):
            chosen = with_torch if sources.needs_torch(path) else plain
            if sources.needs_cuda(path):
                chosen = with_cuda
            if sources.needs_arrow(path):
                chosen = with_arrow
            flags = shlex.split(chosen)
            if not flags:
                continue
            command = [*flags, "-fsyntax-only", "-x", "c++", "-"]
            jobs.append(Job(path, command, f'#include "{path}"\n', sources.key(path, command)))
    return jobs


def tidy_jobs(sources: Sources, paths: list[str], build: Path) -> list[Job]:
    entries = json.loads((build / "compile_commands.json").read_text())
    known = {os.path.relpath(entry["file"], sources.root) for entry in entries}
    rules = hashlib.sha256((sources.root / ".clang-tidy").read_bytes()).hexdigest()
    jobs = []
    for path in paths:
        if path in known:
            command = [
                str(sources.root / ".venv/bin/clang-tidy"),
                "--quiet",
                "-p",
                str(build),
                path,
            ]
            jobs.append(Job(path, command, "", sources.key(path, [*command, rules])))
    return jobs


def errors_in(root: Path, job: Job, output: str) -> list[Finding]:
    """A compiler's errors, one finding each; without any, all it said."""
    output = output.replace(f"{root}/", "")
    found = [
        Finding(match[1], int(match[2]), match[3])
        for match in re.finditer(r"^([^\s:]+):(\d+):\d+: (?:fatal )?error: (.*)$", output, re.M)
    ]
    return found or [Finding(job.path, 0, output.strip())]


def run_jobs(root: Path, jobs: list[Job]) -> list[Finding]:
    """Runs those that have not passed before, as many at a time as there are cores."""
    cache = root / ".cache/lint"
    cache.mkdir(parents=True, exist_ok=True)

    def run(job: Job) -> list[Finding]:
        if (cache / job.key).exists():
            return []
        done = subprocess.run(
            job.command, cwd=root, input=job.stdin, capture_output=True, text=True, check=False
        )
        if done.returncode == 0:
            (cache / job.key).touch()
            return []
        return errors_in(root, job, done.stdout + done.stderr)

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [finding for found in pool.map(run, jobs) for finding in found]
    return list(dict.fromkeys(findings))  # a header's error shows in every source that includes it
