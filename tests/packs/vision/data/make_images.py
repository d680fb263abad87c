"""Images as PIL decodes and resizes them: images.safetensors, for decode_test and resize_test.

python make_images.py       needs pillow, numpy, safetensors
"""

import io
from pathlib import Path

import numpy as np
from PIL import Image
from safetensors.numpy import save_file

HEIGHT, WIDTH = 37, 53


def paint(channels: int) -> Image.Image:
    y, x = np.mgrid[0:HEIGHT, 0:WIDTH]
    waves = [127 + 120 * np.sin(x / (4 + c) + y / (9 - c) + c) for c in range(channels)]
    levels = np.stack(waves, -1).astype(np.uint8)
    levels[HEIGHT // 3 : HEIGHT // 2, WIDTH // 4 : WIDTH // 2] = 255 - 40 * np.arange(channels)
    return Image.fromarray(levels if channels > 1 else levels[..., 0])


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def main() -> None:
    colours, grey = paint(3), paint(1)
    files = {
        "420": encoded(colours, "JPEG", quality=85, subsampling=2),
        "422": encoded(colours, "JPEG", quality=85, subsampling=1),
        "444": encoded(colours, "JPEG", quality=60, subsampling=0),
        "progressive": encoded(colours, "JPEG", quality=85, progressive=True),
        "grey": encoded(grey, "JPEG", quality=85),
        "png": encoded(colours, "PNG"),
        "palette": encoded(colours.quantize(16), "PNG"),
        "bits": encoded(grey.convert("1"), "PNG"),
    }
    tensors = {}
    for name, content in files.items():
        tensors[f"{name}.file"] = np.frombuffer(content, np.uint8).copy()
        tensors[f"{name}.pixels"] = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
    image = Image.open(io.BytesIO(files["png"]))
    bilinear = Image.Resampling.BILINEAR
    # The box is in pixels: left, upper, right, lower.
    resized = {
        "smaller": image.resize((20, 16), bilinear),
        "larger": image.resize((70, 60), bilinear),
        "mixed": image.resize((25, 60), bilinear),
        "crop": image.crop((5, 3, 41, 33)).resize((16, 16), bilinear),
        "window": image.resize((16, 12), bilinear, box=(6.5, 2.25, 44.75, 34.5)),
    }
    for name, one in resized.items():
        tensors[f"{name}.resized"] = np.asarray(one)
    save_file(tensors, Path(__file__).parent / "images.safetensors")


if __name__ == "__main__":
    main()
