"""Pages of the site, for mkdocs: the documents of docs/ and of the root, a reference of the public
headers, and a page for each other file or folder that a page links to, so that no link leads out.
"""

import argparse
import os
import posixpath
import re
import shutil
from pathlib import Path

import api
import python_api

PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security.md",
    "docs/decisions": "decisions/index.md",
}
LANGUAGES = {
    ".cc": "cpp",
    ".cu": "cpp",
    ".h": "cpp",
    ".json": "json",
    ".py": "python",
    ".sh": "bash",
    ".toml": "toml",
}

_BLOCK = re.compile(r"(^(?:```|~~~).*?^(?:```|~~~)\n?)", re.M | re.S)
_CODE = re.compile(rf"{_BLOCK.pattern[:-1]}|`[^`\n]*`)", re.M | re.S)
_LINK = re.compile(r"\]\(([^)\s#:]*)(#[^)\s]*)?\)")
_LIST_AFTER_TEXT = re.compile(r"^(?!(?:[*-]|\d+\.) |[ #|>])(.+\n)(?=(?:[*-]|1\.) )", re.M)


def page_of(path: str) -> str:
    """The page that shows a file or folder of the repository; a picture stays one."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/") and path.endswith(".md"):
        return path.removeprefix("docs/")
    if path.endswith(".svg"):
        return path.removeprefix("docs/")
    path = path.removesuffix(".md")
    return f"source/{path}.md"


def title_of(text: str) -> str:
    heading = re.search(r"^# (.*)$", text, re.M)
    return heading[1] if heading else "?"


class Site:
    """Writes pages, and those that they link to."""

    def __init__(self, root: Path, pages: Path) -> None:
        self._root = root
        self._pages = pages
        self._done: set[str] = set()

    def add(self, path: str) -> None:
        """The page of a file or folder, once."""
        if path in self._done:
            return
        self._done.add(path)
        file = self._root / path
        if file.is_dir():
            self._add_folder(path)
        elif path.endswith(".md"):
            self.write(page_of(path), self._document(path, file.read_text()))
        elif path.endswith(".svg"):
            self.write(page_of(path), file.read_text())
        else:
            language = LANGUAGES.get(file.suffix, "text")
            self.write(page_of(path), f"# {path}\n\n````{language}\n{file.read_text()}\n````\n")

    def write(self, page: str, text: str) -> None:
        target = self._pages / page
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def _add_folder(self, path: str) -> None:
        readme = self._root / path / "README.md"
        if readme.is_file():
            self.write(page_of(path), self._document(f"{path}/README.md", readme.read_text(), path))
            return
        names = sorted(entry.name for entry in (self._root / path).iterdir() if entry.is_file())
        rows = "".join(f"* [{name}]({path}/{name})\n" for name in names)
        self.write(page_of(path), self._document("README.md", f"# {path}\n\n{rows}", path))

    def _document(self, path: str, text: str, shown_as: str = "") -> str:
        """A document with its links led to pages, and blank lines where Markdown's parser in
        Python, unlike others, wants them: between text and a list."""
        page = page_of(shown_as or path)

        def lead(match: re.Match[str]) -> str:
            name, anchor = match[1], match[2] or ""
            if not name:
                return match[0]
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            if not (self._root / target).exists():
                return match[0]  # mkdocs will say so
            self.add(target)
            return f"]({posixpath.relpath(page_of(target), posixpath.dirname(page))}{anchor})"

        parts = _CODE.split(text)
        parts[::2] = [_LINK.sub(lead, part) for part in parts[::2]]
        blocks = _BLOCK.split("".join(parts))
        blocks[::2] = [_LIST_AFTER_TEXT.sub(r"\1\n", block) for block in blocks[::2]]
        return "".join(blocks)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the pages; made anew")
    out = parser.parse_args().out
    root = Path(__file__).resolve().parents[2]
    pages = out / "pages"
    shutil.rmtree(pages, ignore_errors=True)

    site = Site(root, pages)
    documents = sorted((root / "docs").rglob("*.md"))
    for path in [*PAGES, *(os.path.relpath(document, root) for document in documents)]:
        site.add(path)

    decisions = [document for document in documents if document.parent.name == "decisions"]
    rows = "".join(f"* [{title_of(file.read_text())}]({file.name})\n" for file in decisions)
    site.write("decisions/index.md", f"# Decisions\n\n{rows}")
    for page, text in api.pages(root / "include", out / "doxygen").items():
        site.write(page, text)
    site.write("api/python.md", python_api.page(root / "python" / "trireme"))


if __name__ == "__main__":
    main()
