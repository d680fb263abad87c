"""Whether the compiled modules fit the torch that is here."""


def check_torch() -> None:
    """ImportError where they were compiled for another one: they would crash, not fail."""
    import torch  # its libraries come before ours

    from trireme import _built

    if torch.__version__.split("+")[0] != _built.TORCH.split("+")[0]:
        raise ImportError(
            f"trireme was built for torch {_built.TORCH}, and this is torch {torch.__version__}; install that one, or "
            "build trireme anew with this one: pip install --no-build-isolation --force-reinstall --no-deps ."
        )
