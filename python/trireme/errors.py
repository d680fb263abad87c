"""The one exception of the engine."""


class Error(RuntimeError):
    """What went wrong, the same on every rank where it concerns them all.

    The text names what was expected, what came, where, and what to do. `__cause__` is the exception that
    Python code of the model or the data has raised, on the rank where it was raised.
    """

    kind: str = ""
    """`invalid argument`, `timeout`, `peer lost`, `input/output`, `corrupt data`, ..."""
    message: str = ""
    """Without kind and place."""
    rank: int | None = None
    """Where it happened."""
    peer: int | None = None
    """The other rank that it is about."""
    operation: str = ""
    step: int | None = None
    microbatch: int | None = None
