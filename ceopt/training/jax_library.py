"""JAX and optax, which the extra ``training`` brings: whether they are there, and on which device they calculate."""

from __future__ import annotations

import contextlib
import importlib.util
from typing import Any, Final

from ceopt.solvers.checks import OrNone, Refusal, Text
from ceopt.solvers.errors import InvalidTypeError, InvalidValueError, MissingLibraryError

__all__ = ["DEVICE", "on_device", "require_jax"]

_NO_DEVICE: Final = Refusal("the name of a device as {name}", 'Write "cpu" or "gpu".', error=InvalidTypeError)
#: None, which leaves the choice to JAX, or the name of a kind of device.
DEVICE: Final = OrNone(Text(_NO_DEVICE))


def require_jax(who: str) -> None:
    """Refuse to train where JAX or optax is not installed.

    Raises
    ------
    MissingLibraryError
        One of them is missing.
    """
    for library in ("jax", "optax"):
        if importlib.util.find_spec(library) is None:
            then = "Install both: pip install 'ceopt[training]'."
            raise MissingLibraryError(who, "JAX and optax", f"{library} is not installed", then)


def on_device(who: str, name: str | None) -> contextlib.AbstractContextManager[Any]:
    """Return the context in which JAX calculates on a kind of device, "cpu" or "gpu"; None: where JAX likes best.

    Raises
    ------
    InvalidValueError
        JAX finds no such device.
    """
    import jax

    if name is None:
        return contextlib.nullcontext()
    try:
        device = jax.local_devices(backend=name)[0]
    except RuntimeError:
        found = sorted({device.platform for device in jax.local_devices()})
        then = f"Choose from: {', '.join(found)}; or install JAX for it."
        raise InvalidValueError(who, "a device that JAX finds", f"device is {name!r}", then) from None
    context: contextlib.AbstractContextManager[Any] = jax.default_device(device)
    return context
