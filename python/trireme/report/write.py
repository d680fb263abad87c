"""Writes a file whole or not at all."""

from __future__ import annotations

import errno
import os
import tempfile
from pathlib import Path


def write_atomically(path: Path, text: str) -> None:
    """Nobody ever sees a part of it; an older file stays as it is until the new one is whole.

    Of a link the file that it names is written. Raises OSError, also where there is something else
    than a file; then nothing is left behind.
    """
    path = path.resolve()
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file, which is not replaced")
    mask = os.umask(0)
    os.umask(mask)
    descriptor, temporary = tempfile.mkstemp(prefix=f"{path.name}.tmp-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), 0o666 & ~mask)
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
