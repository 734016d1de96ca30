"""Every picture by name, in the stub's order."""

import re
from collections.abc import Callable
from importlib import resources

import plotly.graph_objects as go

from attention_viz import views

__all__ = ["VIEWS"]

_STUB = resources.files(views).joinpath("__init__.pyi").read_text("utf-8")
# The stub is read, as by `lazy_loader`, so that one list is enough.
_NAMES = re.findall(r"^from \.figures\.[\w.]+ import (\w+) as \1$", _STUB, re.MULTILINE)

VIEWS: dict[str, Callable[..., go.Figure]] = {name: getattr(views, name) for name in _NAMES}
