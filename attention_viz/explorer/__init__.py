"""The interactive view of a trace: one browser component for notebooks, single HTML files and the app.

Use `explore(trace)` in a notebook; hosts see `attention_viz.explorer.source`. Names load on first use, so that a page
can be drawn without waiting for torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
