"""Declare the operators that torchvision's import needs: import this before transformers.

The build on PyPI defines them in a library that needs CUDA. They sort detected boxes, and nothing here calls them.
"""

import importlib.util
import sys

from torch.library import Library

__all__ = ["LIBRARY"]


def _declared() -> Library | None:
    if "torchvision" in sys.modules or importlib.util.find_spec("torchvision") is None:
        return None
    try:
        importlib.import_module("torchvision")
    except RuntimeError:
        library = Library("torchvision", "FRAGMENT")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        return library
    return None


# The operators last as long as this.
LIBRARY = _declared()
