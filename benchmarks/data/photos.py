"""JPEG images of one size, for the benchmarks of this folder."""

from pathlib import Path

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 500, 400


def make_images(folder: Path, photos: Path | None, count: int) -> list[Path]:
    """Photographs, resized; else noise that is smooth, which takes as many bytes. One folder a class."""
    random = np.random.default_rng(1)
    files = sorted(photos.glob("*/*.jpg")) if photos else []
    paths = []
    for i in range(count):
        if files:
            image = Image.open(files[i % len(files)]).convert("RGB").resize((WIDTH, HEIGHT))
        else:
            coarse = random.integers(0, 256, (HEIGHT // 4, WIDTH // 4, 3), np.uint8)
            fine = random.normal(0, 8, (HEIGHT, WIDTH, 3))
            smooth = Image.fromarray(coarse).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC)
            image = Image.fromarray(np.clip(np.asarray(smooth) + fine, 0, 255).astype(np.uint8))
        path = folder / f"class{i % 4}" / f"{i:05d}.jpg"
        path.parent.mkdir(exist_ok=True, parents=True)
        image.save(path, quality=85)
        paths.append(path)
    return paths
