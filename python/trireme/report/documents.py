"""Reads the documents of docs/formats.md: a format, a version, a hash."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from trireme.report.fields import Fields, Notes


class NoDocument(Exception):
    """The file is no document of the format that was asked for; the text says why."""


def canonical(document: dict[str, object]) -> str:
    """The text whose SHA-256 a document carries (docs/formats.md)."""
    rest = {key: value for key, value in document.items() if key != "sha256"}
    return json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def document_sha256(document: dict[str, object]) -> str:
    return hashlib.sha256(canonical(document).encode(errors="surrogatepass")).hexdigest()


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result = dict(pairs)
    if len(result) < len(pairs):
        raise ValueError("a field appears twice in one object")
    return result


def parse(text: str) -> object:
    """JSON; raises ValueError where it is none, however it is malformed."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_json(path: Path) -> object:
    """What the file holds. Raises NoDocument where it cannot be read or is no JSON."""
    try:
        return parse(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise NoDocument(f"{path.name} cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise NoDocument(f"{path.name} is no JSON: {error}") from None


def read_document(path: Path, kind: str, notes: Notes) -> Fields:
    """The document at `path`, which must say that it is a `kind` of version 1.

    A wrong hash becomes a note: the content is shown all the same. Raises NoDocument, also where a
    field appears twice.
    """
    name = path.name
    document = read_json(path)
    found = document.get("format") if isinstance(document, dict) else None
    if not isinstance(document, dict) or found != kind:
        shown = f"says it is {str(found)[:80]}" if found else "has no field format"
        raise NoDocument(f"{name} is no {kind} document: it {shown}")
    if document.get("version") != 1:
        raise NoDocument(f"{name} has version {str(document.get('version'))[:20]}, not 1")
    claimed = document.get("sha256")
    if claimed is not None and claimed != document_sha256(document):
        notes.add(
            f"{name} was changed or damaged: its sha256 does not match its content, "
            "which is shown as it is"
        )
    return Fields(document, name, notes)
