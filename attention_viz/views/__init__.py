"""Pictures: one function each, from a trace to a figure; `VIEWS` lists them.

Names load on first use, so that the colours in `views.theme` can be read without plotly.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
