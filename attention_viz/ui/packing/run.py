"""A run as the explorer's bytes."""

import weakref
from typing import TYPE_CHECKING

from attention_viz.serving.door import long_text
from attention_viz.trace.once import once, once_for_each

if TYPE_CHECKING:
    from attention_viz.serving.run import Run

__all__ = ["long_id_of", "payload_of"]


def payload_of(run: "Run") -> bytes:
    """Return the run's explorer bytes, packed once; for a long text, small pictures of all heads."""
    return _packed(run).payload


def long_id_of(run: "Run") -> str | None:
    """Return a long text's id for `pack_head`, else None."""
    return _packed(run).long_id


class _Packed:
    """A run's packed bytes, each locked; doesn't keep the run alive."""

    def __init__(self, run: "Run") -> None:
        self._run = weakref.ref(run)

    @once
    def payload(self) -> bytes:
        """Pack the trace as the explorer reads it."""
        from attention_viz.explorer import is_long, pack

        run = self._run()
        assert run is not None, "whoever asks holds it"
        with long_text(run.tokens):
            return pack(run.trace, terms=() if is_long(run.trace) else None, findings=run.findings)

    @once
    def long_id(self) -> str | None:
        """Read a long text's id from its bytes."""
        from attention_viz.explorer import id_of

        return id_of(self.payload)


@once_for_each
def _packed(run: "Run") -> _Packed:
    return _Packed(run)
