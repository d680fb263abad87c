"""Quotes in documents: a code block after `<!-- quote: FILE -->` is word for word in that file."""

import re
from pathlib import Path

from source import Finding, repository_files

QUOTE = re.compile(r"^<!-- quote: (\S+) -->\n```\w*\n(.*?)^```$", re.M | re.S)


def check_text(root: Path, path: str, text: str) -> list[Finding]:
    findings = []
    for match in QUOTE.finditer(text):
        file = root / match[1]
        line = text.count("\n", 0, match.start()) + 1
        if not file.is_file():
            findings.append(Finding(path, line, f"quotes {match[1]}: no such file"))
        elif match[2] not in file.read_text():
            findings.append(Finding(path, line, f"differs from {match[1]}, which it quotes"))
    return findings


def check(root: Path) -> list[Finding]:
    documents = [path for path in repository_files(root) if path.endswith(".md")]
    return [
        finding
        for path in documents
        for finding in check_text(root, path, (root / path).read_text())
    ]
