"""Signatures and annotations of functions, also of names that are not defined yet.

Until Python 3.13, such names are in texts. Since 3.14, an annotation is computed when it is asked for.
"""

import inspect
import sys
from collections.abc import Callable
from typing import Any


def signature_of(function: Callable[..., object]) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except NameError:
        if sys.version_info >= (3, 14):
            from annotationlib import Format

            return inspect.signature(function, annotation_format=Format.FORWARDREF)
        raise


def annotations_of(function: Callable[..., object]) -> dict[str, Any]:
    """Return the annotations of the function inside all decorators."""
    function = inspect.unwrap(function)
    try:
        return inspect.get_annotations(function)
    except NameError:
        if sys.version_info >= (3, 14):
            from annotationlib import Format, get_annotations

            return get_annotations(function, format=Format.FORWARDREF)
        raise
