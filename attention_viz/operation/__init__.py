"""The operation: softmax(Q Kᵀ / √d_k) V with every term that transformers add to it, masks, and modules made of it.

Uses torch and `errors`; of our own code nothing else.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(__name__, submodules=["masks"])
