"""The interactive picture of a trace: one browser component, shown in a notebook, a single HTML file, or the app.

`explore(trace)` is all a notebook needs. `pack`, `component_source`, `channel_source` and the like are for hosts: how
they fit together is told in `attention_viz.explorer.source`.

Names load on first use, so that a page can be drawn without waiting for torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
