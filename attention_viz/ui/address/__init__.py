"""One codec for what every page keeps in the address; may use serving and what stands below it.

A page lists its parameters as the fields of a frozen dataclass, each declared with `parameter`: its default, its kind,
what it means, when it applies. `read`, `write` and `Choices` do the rest for all pages alike.
"""

from attention_viz.ui.address.state import (
    DEFAULT,
    EXAMPLES,
    MOST_MORE,
    Positions,
    State,
    Switch,
    opened_on,
    own_contrast,
    own_example,
    read_address,
    write_address,
)

__all__ = [
    "DEFAULT",
    "EXAMPLES",
    "MOST_MORE",
    "Positions",
    "State",
    "Switch",
    "opened_on",
    "own_contrast",
    "own_example",
    "read_address",
    "write_address",
]
