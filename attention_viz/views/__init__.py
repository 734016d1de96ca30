"""Figures: one function each, from a trace to a figure; `VIEWS` lists them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
