"""Links in documents: a relative link names a file that exists, an #anchor a heading of it."""

import re
from pathlib import Path

from source import Finding, repository_files

LINK = re.compile(r"(?<!\\)\[[^\]]*\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)")
OUTSIDE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.I)


def without_code(text: str) -> str:
    """Text with fenced blocks and code spans blanked; lines stay where they are."""

    def blank(match: re.Match[str]) -> str:
        return re.sub(r"[^\n]", " ", match.group(0))

    text = re.sub(r"^(```|~~~).*?^\1", blank, text, flags=re.M | re.S)
    return re.sub(r"`[^`\n]*`", blank, text)


def anchors(text: str) -> set[str]:
    """The anchors of a document's headings, as code hosts make them."""
    text = re.sub(r"^(```|~~~).*?^\1", "", text, flags=re.M | re.S)
    found: set[str] = set()
    for heading in re.findall(r"^#+\s+(.*?)\s*#*$", text, flags=re.M):
        heading = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 1
        unique = slug
        while unique in found:
            unique, number = f"{slug}-{number}", number + 1
        found.add(unique)
    return found


def check_document(root: Path, path: str) -> list[Finding]:
    findings = []
    text = (root / path).read_text()
    for match in LINK.finditer(without_code(text)):
        target = match.group(1)
        if OUTSIDE.match(target):
            continue
        line = text.count("\n", 0, match.start()) + 1
        name, _, anchor = target.partition("#")
        file = (root / path).parent / name if name else root / path
        if not file.exists():
            findings.append(Finding(path, line, f"{target}: no such file"))
        elif anchor and file.suffix == ".md" and anchor not in anchors(file.read_text()):
            findings.append(Finding(path, line, f"{target}: no such heading"))
    return findings


def check(root: Path) -> list[Finding]:
    documents = [path for path in repository_files(root) if path.endswith(".md")]
    return [finding for path in documents for finding in check_document(root, path)]
