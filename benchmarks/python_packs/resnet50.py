"""The shapes of ResNet-50's 161 parameters."""


def _block(inputs: int, width: int, has_shortcut: bool) -> list[tuple[int, ...]]:
    outputs = 4 * width
    convolutions: list[tuple[int, ...]] = [
        (width, inputs, 1, 1),
        (width, width, 3, 3),
        (outputs, width, 1, 1),
    ]
    if has_shortcut:
        convolutions.append((outputs, inputs, 1, 1))
    return [shape for kernel in convolutions for shape in (kernel, kernel[:1], kernel[:1])]


def _shapes() -> list[tuple[int, ...]]:
    shapes: list[tuple[int, ...]] = [(64, 3, 7, 7), (64,), (64,)]
    inputs = 64
    for width, blocks in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for block in range(blocks):
            shapes += _block(inputs, width, block == 0)
            inputs = 4 * width
    return [*shapes, (1000, 2048), (1000,)]


SHAPES = _shapes()
