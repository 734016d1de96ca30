"""One codec for all pages' URL parameters."""

from attention_viz.ui.address.state import (
    DEFAULT,
    EXAMPLES,
    MOST_IMAGES,
    MOST_MORE,
    Positions,
    State,
    Switch,
    opened_on,
    own_contrast,
    own_example,
    own_sample,
    read_address,
    write_address,
)

__all__ = [
    "DEFAULT",
    "EXAMPLES",
    "MOST_IMAGES",
    "MOST_MORE",
    "Positions",
    "State",
    "Switch",
    "opened_on",
    "own_contrast",
    "own_example",
    "own_sample",
    "read_address",
    "write_address",
]
