"""libtrireme_tensorflow.so: TensorFlow's operators, and the C interface of trireme/wire.h behind them."""

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

import tensorflow as tf

from trireme.errors import Error

_WIRE_VERSION = 6  # of trireme/wire.h, whose options are laid out below
_PATH = Path(__file__).parents[1] / "lib" / "libtrireme_tensorflow.so"


class GroupOptions(ctypes.Structure):
    """TriremeGroupOptions."""

    _fields_ = (
        ("struct_bytes", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("ranks", ctypes.c_void_p),
        ("num_ranks", ctypes.c_int32),
        ("deadline_ms", ctypes.c_int64),
        ("any_order", ctypes.c_int32),
        ("num_reducers", ctypes.c_int32),
        ("device", ctypes.c_char_p),
        ("stream", ctypes.c_void_p),
        ("checks_calls", ctypes.c_int32),
        ("algorithm", ctypes.c_char_p),
    )


@cache
def operators() -> Any:
    """TensorFlow's Python functions for the operators; loads the library."""
    if not _PATH.exists():
        raise ImportError(
            f"{_PATH} is missing: Trireme was built without its operators for TensorFlow; in a checkout, "
            "`./dev test --tensorflow` builds them"
        )
    return tf.load_op_library(str(_PATH))


@cache
def wire() -> ctypes.CDLL:
    """The C interface. What it returns is to be passed to `check`."""
    operators()  # first: TensorFlow notes what a library defines while it is loaded
    library = ctypes.CDLL(str(_PATH))
    for name in ("trireme_status_text", "trireme_last_error"):
        getattr(library, name).restype = ctypes.c_char_p
    for name in ("trireme_tensorflow_problem", "trireme_tensorflow_attach"):
        getattr(library, name).restype = ctypes.c_char_p
    library.trireme_tensorflow_attach.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    for name in ("trireme_world_free", "trireme_group_free", "trireme_tensorflow_detach"):
        getattr(library, name).restype = None
    version = library.trireme_wire_version()
    if version != _WIRE_VERSION:
        raise ImportError(f"libtrireme_wire.so has version {version}, not {_WIRE_VERSION}")
    problem = library.trireme_tensorflow_problem().decode()
    if problem:
        raise ImportError(f"no operators for TensorFlow {tf.__version__}: it lacks {problem}")
    return library


def check(status: int) -> None:
    """Error, with the library's text, unless it is kTriremeOk."""
    if status == 0:
        return
    text = wire().trireme_last_error().decode()
    error = Error(text)
    error.kind, error.message = wire().trireme_status_text(status).decode(), text
    peer = wire().trireme_last_error_peer()
    error.peer = peer if peer >= 0 else None
    raise error
