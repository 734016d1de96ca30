"""The course: lessons and exercises in order, with every number computed from the reader's own sentence.

Names load on first use, so that a page can list what there is without waiting for torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
