"""Images and labels of two IDX files, as MNIST has them, to a tar shard of PNG images and classes.

python3 idx_to_tar.py IMAGES LABELS OUT.tar        files may be gzipped
"""

import gzip
import io
import struct
import sys
import tarfile
import zlib
from pathlib import Path


def read_idx(path: Path) -> tuple[tuple[int, ...], bytes]:
    """Sizes and values: two zero bytes, the type (8: unsigned bytes), the number of sizes, these."""
    content = path.read_bytes()
    if content[:2] == b"\x1f\x8b":
        content = gzip.decompress(content)
    zero, kind, dims = struct.unpack_from(">HBB", content)
    if zero != 0 or kind != 8:
        raise SystemExit(f"{path} is no IDX file of bytes")
    return struct.unpack_from(f">{dims}I", content, 4), content[4 + 4 * dims :]


def to_png(levels: bytes, width: int) -> bytes:
    """A grey image: each row begins with its filter, 0."""

    def chunk(name: bytes, data: bytes) -> bytes:
        checked = name + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    rows = [b"\0" + levels[i : i + width] for i in range(0, len(levels), width)]
    header = struct.pack(">IIBBBBB", width, len(rows), 8, 0, 0, 0, 0)
    data = zlib.compress(b"".join(rows), 9)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", header),
            chunk(b"IDAT", data),
            chunk(b"IEND", b""),
        ]
    )


def main() -> None:
    if len(sys.argv) != 4:
        raise SystemExit(__doc__)
    images, labels, out = map(Path, sys.argv[1:])
    (count, height, width), levels = read_idx(images)
    _, classes = read_idx(labels)
    with tarfile.open(out, "w") as tar:
        for i in range(count):
            image = levels[i * height * width : (i + 1) * height * width]
            for ending, content in (
                ("png", to_png(image, width)),
                ("cls", str(classes[i]).encode()),
            ):
                member = tarfile.TarInfo(f"{i:06d}.{ending}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))


if __name__ == "__main__":
    main()
