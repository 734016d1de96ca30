"""The modules around an attention call."""

import contextlib
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, replace

from torch import Tensor, nn

from attention_viz.operation.modules import Projection
from attention_viz.recording.call_rows import WindowOrder
from attention_viz.recording.hooks import hooked
from attention_viz.recording.recorder import Recorder, recording
from attention_viz.recording.weights.matrix import Projections, matrix_of
from attention_viz.trace.trace import Layer


@dataclass(frozen=True, eq=False)
class ColumnSource:
    """A query's, key's or value's source: columns of a module's output.

    Attributes:
        like: zero rows, (0, in), of the module's input.
        columns: head after head.
        factor: the model's multiplier after the module.
        rotated: whether positions are turned into them.
    """

    module: nn.Module
    like: Tensor
    columns: Tensor
    factor: float = 1.0
    rotated: bool = False

    def read(self, left: Tensor, heads: int) -> Tensor:
        """Return (head, position, width) from the module's output."""
        chosen = left.index_select(-1, self.columns.to(left.device)) * self.factor
        return chosen.reshape(len(left), heads, -1).transpose(0, 1)

    def projection(self) -> Projection | str:
        """Return the matrix, or why there is none, as a part of a sentence."""
        found = matrix_of(self.module, self.like)
        if isinstance(found, str):
            return found
        bias = None if found.bias is None else found.bias[self.columns] * self.factor
        return Projection(found.weight[:, self.columns] * self.factor, bias)


@dataclass(frozen=True, eq=False)
class Wiring:
    """One layer's modules; None if not found.

    Attributes:
        value: its module's input is the layer's, or in cross-attention the other text's states.
        output: joins the heads, W_O.
        like: zero rows, (0, in), of the output module's input.
    """

    query: ColumnSource | None
    key: ColumnSource | None
    value: ColumnSource | None
    output: nn.Module | None
    like: Tensor

    def modules(self) -> list[nn.Module]:
        """Return the modules to hook."""
        sources = [self.query, self.value, *(key for key in (self.key,) if key is not None and key.rotated)]
        found = [None if source is None else source.module for source in sources]
        return [module for module in (*found, self.output) if module is not None]

    def projections(self) -> Projections:
        """Return matrices by "query", "key", "value" and "output"."""
        sources = {"query": self.query, "key": self.key, "value": self.value}
        made = "no module's output was found in it unchanged"
        found = {name: made if source is None else source.projection() for name, source in sources.items()}
        taken = "no module was found that takes the heads' outputs unchanged"
        return Projections(found | {"output": taken if self.output is None else matrix_of(self.output, self.like)})


class Listener:
    """References to the tensors around one pass's calls.

    A module may serve several layers and threads: tensors belong to this recorder's current call.
    """

    def __init__(self, recorder: Recorder, wirings: Sequence[Wiring]) -> None:
        """Keep the recorder and the layers' wirings."""
        self._recorder, self._wirings = recorder, wirings
        self._heard: dict[tuple[int, str], tuple[Tensor, int]] = {}

    @contextlib.contextmanager
    def listening(self) -> Generator[None]:
        """Hook the modules during the block."""

        def hear(module: nn.Module, inputs: tuple[object, ...], named: dict[str, object], output: object) -> None:
            # A function and no bound method: copying the model meanwhile would copy all that the method holds.
            self._hear(module, inputs, named, output)

        with hooked({id(module): module for wiring in self._wirings for module in wiring.modules()}.values(), hear):
            yield

    def layer(self, number: int, layer: Layer, *, crossing: bool = False) -> Layer:
        """Return a layer with its surroundings; `crossing` if keys are another text's."""
        query, key = layer.attention.query, layer.attention.key
        wiring, count, order = self._wirings[number], query.shape[-2], self._recorder.windows.get(number)

        def around(what: str, count: int) -> Tensor | None:
            found = rows(self._unchanged(number, what), count, order)
            return None if found is None else found.to(query.device)

        embeddings, joined = around("asking" if crossing else "entered", count), around("joined", count)
        if embeddings is not None and joined is not None and embeddings.shape[-1] != joined.shape[-1]:
            # Values are made of a shorter, latent vector, as DeepSeek's are: that isn't the layer's input.
            embeddings = None
        return replace(
            layer,
            embeddings=embeddings,
            source=around("entered", key.shape[-2]) if crossing else None,
            joined=joined,
            unrotated_query=self._unrotated(wiring.query, number, "query", query),
            unrotated_key=self._unrotated(wiring.key, number, "key", key),
        )

    def _hear(self, module: nn.Module, inputs: tuple[object, ...], named: dict[str, object], output: object) -> None:
        number = self._recorder.count
        if recording.get() is not self._recorder or not isinstance(output, Tensor):
            return
        if number < len(self._wirings):
            wiring = self._wirings[number]
            if wiring.query is not None and module is wiring.query.module:
                self._keep(number, "query", output)
                self._keep(number, "asking", entering(inputs, named))
            if wiring.key is not None and module is wiring.key.module:
                self._keep(number, "key", output)
            if wiring.value is not None and module is wiring.value.module:
                self._keep(number, "entered", entering(inputs, named))
        if number and module is self._wirings[number - 1].output:
            if self._recorder.again is not None:  # the turn's second run counts
                self._heard.pop((number - 1, "joined"), None)
            self._keep(number - 1, "joined", output)

    def _keep(self, number: int, what: str, tensor: Tensor | None) -> None:
        keep = self._recorder.keep
        if tensor is not None and (keep is None or number in keep):
            self._heard.setdefault((number, what), (tensor, tensor._version))

    def _unchanged(self, number: int, what: str) -> Tensor | None:
        """Return the recorded tensor, unless overwritten since."""
        tensor, version = self._heard.get((number, what), (None, 0))
        return tensor if tensor is not None and tensor._version == version else None

    def _unrotated(self, source: ColumnSource | None, number: int, what: str, after: Tensor) -> Tensor | None:
        left = rows(self._unchanged(number, what), after.shape[-2], self._recorder.windows.get(number))
        if source is None or not source.rotated or left is None:
            return None
        return source.read(left, after.shape[0]).to(after.device)


def entering(inputs: tuple[object, ...], named: Mapping[str, object]) -> Tensor | None:
    """Return a module's first tensor input."""
    return next((item for item in (*inputs, *named.values()) if isinstance(item, Tensor)), None)


def rows(tensor: Tensor | None, count: int, order: WindowOrder | None = None) -> Tensor | None:
    """Return (position, width), of a batch its rows one after the other, or windows in their order.

    None for another number of positions.
    """
    if tensor is None or tensor.ndim < 2 or tensor.numel() == 0:
        return None
    if order is not None:
        return order.of_states(tensor)
    if tensor.ndim > 2 and tensor.shape[0] > 1 and tensor.shape[0] * tensor.shape[1] == count:
        tensor = tensor.flatten(0, 1)[None]
    if tensor.ndim > 2:
        if tensor.shape[0] != 1:
            return None
        tensor = tensor[0]
    if tensor.ndim == 3 and tensor.shape[0] != count and tensor.shape[1] == count:
        tensor = tensor.transpose(0, 1)
    return tensor.flatten(1) if tensor.shape[0] == count else None
