"""A run's attention layers by stream and model number."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from jaxtyping import Float
from torch import Tensor

from attention_viz.errors import TraceError
from attention_viz.operation.attention import Attention
from attention_viz.operation.shapes import is_whole
from attention_viz.trace.numbered.kept import KeptLayers, chosen_layers, no_such_layer
from attention_viz.trace.numbered.number import LayerIndex, LayerNumber

if TYPE_CHECKING:
    from attention_viz.trace.layers import Layer

__all__ = ["ByNumber", "some_layers"]


def some_layers(trace: "ByNumber", layers: Sequence[int] | None) -> dict[str, KeptLayers]:
    """Choose a trace's layers by stream; all kept ones by default."""
    if layers is None:
        return dict(trace.kept)
    found = dict(chosen_layers(layers, trace.kept))
    for stream, wanted in found.items():
        for number in wanted.numbers:
            _ = trace.attention(number, stream)
    return found


class ByNumber:
    """The attention layers of a run, asked for by stream and number.

    Attributes:
        layers: by stream, the layers that are kept, in the order they ran.
        kept: by stream, which numbers these have.
    """

    layers: "Mapping[str, tuple[Layer, ...]]"
    kept: Mapping[str, KeptLayers]

    @property
    def streams(self) -> tuple[str, ...]:
        """The kinds of attention recorded: ("encoder",), ("decoder",) or ("encoder", "decoder", "cross")."""
        return tuple(self.layers)

    def stream(self, name: str | None = None) -> str:
        """The stream of that name; None stands for the only one there is.

        Raises:
            TraceError: no such stream, or several to choose from and none chosen.
        """
        if name is None and len(self.layers) == 1:
            return self.streams[0]
        if name is None or name not in self.layers:
            asked = "no stream was named" if name is None else f"the stream {name!r} was asked for"
            raise TraceError(f"{asked}; this trace has {', '.join(self.streams)}")
        return name

    def layer_count(self, stream: str | None = None) -> int:
        """How many attention layers are kept; all of the model's, unless only some were asked for."""
        return len(self.layers[self.stream(stream)])

    def layer_numbers(self, stream: str | None = None) -> tuple[int, ...]:
        """The model's own numbers of the attention layers that are kept, rising.

        0, 1, 2 …, unless only some layers were asked for, or the model has layers without softmax attention.
        """
        return self.kept[self.stream(stream)].numbers

    def check_every_layer(self, what: str, stream: str | None = None) -> None:
        """Refuse what can't be had of some layers alone.

        Args:
            what: was asked for.
            stream: of which stream; of every one by default.

        Raises:
            TraceError: a layer is missing.
        """
        for name in self.streams if stream is None else (self.stream(stream),):
            if not self.kept[name].whole:
                raise TraceError(
                    f"{what} needs every layer of the {name}, and this trace keeps {self.kept[name]}; trace the text "
                    "without layers=…"
                )

    def head_count(self, layer: int, stream: str | None = None) -> int:
        """How many heads a layer has."""
        return self.attention(layer, stream).shape[0]

    def attention(self, layer: int, stream: str | None = None) -> Attention:
        """The attention call of one layer, head first: query is (head, query, d_k).

        Raises:
            TraceError: there is no such layer or stream, or the layer isn't kept.
        """
        stream, index = self._index(layer, stream)
        return self.layers[stream][index].attention

    def label(self, layer: int, stream: str | None = None) -> str:
        """The model's own number for a layer, as text.

        Raises:
            TraceError: there is no such layer or stream, or the layer isn't kept.
        """
        stream, index = self._index(layer, stream)
        return self.layers[stream][index].label

    def weights(self, layer: int, head: int, stream: str | None = None) -> Float[Tensor, "query key"]:
        """How much each query takes from each key, in one head; errors as of `attention` and its `head`."""
        return self.attention(layer, stream).head(head).weights

    def _index(self, layer: int, stream: str | None) -> tuple[str, LayerIndex]:
        stream = self.stream(stream)
        kept = self.kept[stream]
        if not is_whole(layer) or layer not in kept.numbers:
            if kept.whole or layer in kept.without:
                raise TraceError(no_such_layer(layer, kept, f"the {stream}"))
            raise TraceError(f"layer {layer!r} was asked for; of the {stream} this trace keeps {kept}")
        return stream, kept.index(LayerNumber(layer))
