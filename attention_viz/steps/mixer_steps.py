"""The steps of one head or channel of a layer without a softmax as matrices, and their cells as arithmetic.

A new step is an entry in `MIXER_STEPS`; a kind takes the steps whose terms it has.
"""

import math
from collections.abc import Callable

from torch import Tensor

from attention_viz.errors import ShapeError
from attention_viz.steps.arithmetic import Arithmetic, ProductTerm
from attention_viz.steps.mixer_rows import reached, stages_of
from attention_viz.steps.mixing import MixerHead, logs_of, writes_of
from attention_viz.steps.pair import open_pair, pair_steps
from attention_viz.steps.steps import Step

__all__ = ["MIXER_STEPS", "mixer_steps_of", "mixer_tensors", "open_mixer_cell"]


def open_mixer_cell(opened: MixerHead, step: str, row: int, column: int) -> Arithmetic:
    """Return one cell's arithmetic.

    Raises:
        ShapeError: no such step or cell, or this head doesn't have the step.
    """
    known = mixer_steps_of(opened)
    if step not in known:
        raise ShapeError(f"unknown step {step!r}; choose {', '.join(known)}")
    matrix = known[step].function(opened)
    rows, columns = matrix.shape if matrix is not None else (0, 0)
    if matrix is None or not (0 <= row < rows and 0 <= column < columns):
        raise ShapeError(f"no cell ({row}, {column}); the matrix is {rows} × {columns}, counted from 0")
    if step == "output":
        return _output(opened, row, column)
    if step == "kept":
        return _kept(opened, row, column)
    if step == "erased":
        return _erased(opened, row, column)
    if step in ("read", "decayed", "weights"):
        return pair_steps(open_pair(opened, row, column)).get("weight" if step == "weights" else step) or _ahead()
    return Arithmetic("given", _GIVEN.get(step, "The layer computes it from its input."), float(matrix[row, column]))


def mixer_steps_of(opened: MixerHead) -> dict[str, Step]:
    """Return the steps that this head's kind has, in order."""
    return {name: step for name, step in MIXER_STEPS.items() if step.applies(opened)}


def mixer_tensors(opened: MixerHead) -> dict[str, Tensor]:
    """Return every step's matrix by name, each 2-D, with `skip`, `taps` and `scale` if the kind has them."""
    found = {name: step.function(opened) for name, step in mixer_steps_of(opened).items()}
    call = opened.mixer
    more = {"skip": None if call.skip is None else call.skip.reshape(1, 1), "taps": call.taps, "floor": call.floor}
    return {name: tensor for name, tensor in (found | more).items() if tensor is not None}


_GIVEN = {
    "query": "The layer computes it from its input.",
    "decay": "e to the recorded log decay: the state is multiplied by it before this token writes.",
    "write": "The layer computes it from its input.",
}


def _ahead() -> Arithmetic:
    return Arithmetic("given", "The key comes after the query, so it isn't in the state yet.", 0.0)


def _kept(opened: MixerHead, row: int, column: int) -> Arithmetic:
    if column > row or opened.kept is None:
        return _ahead()
    call = opened.exact
    decays, writes = logs_of(call).exp(), writes_of(call)
    rest = key = call.key[column]
    for at in range(column + 1, row + 1):
        rest = rest * decays[at]
        if call.erases:
            rest = rest - writes[at] * (call.key[at] @ rest) * call.key[at]
    size = float(key.square().sum())
    if not size:
        return Arithmetic("given", "The key is 0, so nothing was written.", 0.0)
    numbers = enumerate(zip(key.tolist(), rest.tolist(), strict=True))
    terms = tuple(
        ProductTerm(f"dimension {d}", (("key", a), ("rest", b), ("1 ÷ ‖key‖²", 1 / size)), a * b / size)
        for d, (a, b) in numbers
    )
    said = "The key times its rest in the state, over the key's own square: 1 as it is written."
    return Arithmetic("sum", said, math.fsum(term.product for term in terms), terms)


def _erased(opened: MixerHead, row: int, column: int) -> Arithmetic:
    steps = pair_steps(open_pair(opened, row, column))
    if "kept" not in steps:
        return _ahead()
    before = ProductTerm(steps["kept"].terms[0].label, (), steps["kept"].terms[0].product)
    return Arithmetic("sum", steps["erased"].sentence, steps["kept"].total, (before, *steps["erased"].terms))


def _output(opened: MixerHead, row: int, column: int) -> Arithmetic:
    labels = opened.trace.key_tokens(opened.stream).numbered
    reach = row + 1 if opened.mixer.is_causal else len(labels)
    weights = exact_row(opened, row).tolist()[:reach]
    values = opened.exact.value[:reach, column].tolist()
    terms = tuple(
        ProductTerm(label, (("weight", a), ("value", b)), a * b)
        for label, a, b in zip(labels[:reach], weights, values, strict=True)
    )
    total = float(opened.mixer.output[row, column])
    return Arithmetic("sum", f"The sum over {len(terms)} keys of weight × value.", total, terms)


def exact_row(opened: MixerHead, query: int) -> Tensor:
    """Return one row of weights in float64."""
    return opened.exact.rows([query]).weights[0]


def _rows(name: str) -> Callable[[MixerHead], Tensor | None]:
    """Return a function for a recorded term with one row per token."""

    def function(opened: MixerHead) -> Tensor | None:
        term = getattr(opened.mixer, name)
        rows = opened.mixer.shape[-1]
        if term is None:
            return None
        whole = term.expand(rows, term.shape[-1])
        return whole.exp() if name == "decay" else whole

    return function


def _read(opened: MixerHead) -> Tensor:
    call = opened.mixer
    product = call.query @ call.key.mT * call.scale
    return product.tril() if call.is_causal else product


def _stage(name: str) -> Callable[[MixerHead], Tensor | None]:
    """Return a function for the numbers of all queries after a stage; 0 where a key can't be reached."""

    def function(opened: MixerHead) -> Tensor | None:
        queries = range(opened.mixer.shape[-2])
        found = next((one.values for one in stages_of(opened, queries) if one.name == name), None)
        return None if found is None else found.masked_fill(~reached(opened, queries), 0).float()

    return function


def _changed(name: str) -> Callable[[MixerHead], str]:
    def change(opened: MixerHead) -> str:
        found = MIXER_STEPS[name].function(opened)
        if found is None:
            return ""
        low, high = (_number(float(one)) for one in (found.min(), found.max()))
        what = f"{found.numel():,} numbers, between {low} and {high}."
        if name != "weights":
            return what
        negative = int((found < 0).sum())
        return f"{what} {negative:,} are negative: there the value is taken away."

    return change


def _number(number: float) -> str:
    return f"{number:.3g}".replace("-", "−")


def _has(name: str) -> Callable[[MixerHead], bool]:
    return lambda opened: getattr(opened.mixer, name) is not None


def _step(
    name: str,
    label: str,
    says: str,
    formula: tuple[str, str],
    axes: tuple[str, str],
    function: Callable[[MixerHead], Tensor | None],
    applies: Callable[[MixerHead], bool],
) -> Step:
    return Step(label, says, *formula, axes, function, _changed(name), applies=applies)


def _vectors(opened: MixerHead) -> bool:
    return opened.has_vectors


MIXER_STEPS: dict[str, Step] = {
    "query": _step(
        "query",
        "Query",
        "How each token reads the state, or is compared with the keys.",
        ("Q", "Q"),
        ("query", "d_k"),
        lambda opened: opened.mixer.query,
        _vectors,
    ),
    "key": _step(
        "key",
        "Key",
        "The place in the state where each token writes its value.",
        ("K", "K"),
        ("key", "d_k"),
        lambda opened: opened.mixer.key,
        _vectors,
    ),
    "value": _step(
        "value",
        "Value",
        "Each token's content, which it writes into the state.",
        ("V", "V"),
        ("key", "d_v"),
        lambda opened: opened.mixer.value,
        lambda opened: True,
    ),
    "write": _step(
        "write",
        "Write",
        "How strongly each token writes its value.",
        (r"\beta_j", r"\beta_j"),
        ("key", "one"),
        _rows("write"),
        _has("write"),
    ),
    "decay": _step(
        "decay",
        "Decay",
        "The part of the state that each token leaves before it writes: 1 is all, 0 is nothing.",
        (r"e^{g_j}", r"e^{g_j}"),
        ("key", "decays"),
        _rows("decay"),
        _has("decay"),
    ),
    "gate": _step(
        "gate",
        "Gate",
        "A factor for all that a query reads.",
        (r"z_i", r"z_i"),
        ("query", "one"),
        _rows("gate"),
        _has("gate"),
    ),
    "read": _step(
        "read",
        "Read",
        "How well each query reads each key, as if no token were between them.",
        (r"R = \lambda\, Q K^{\top}", r"R = \lambda\, Q^{\top} K"),
        ("query", "key"),
        _read,
        _vectors,
    ),
    "decayed": _step(
        "decayed",
        "Decayed",
        "How well each query reads each key after the decays of all tokens after the key, if none of them erased.",
        (r"\lambda\, q_i^{\top} e^{G_i - G_j}\, k_j", r"\lambda\, q_i^{\top} e^{G_i - G_j}\, k_j"),
        ("query", "key"),
        _stage("decayed"),
        lambda opened: opened.mixer.keeps_state and opened.mixer.decay is not None and opened.has_vectors,
    ),
    "erased": _step(
        "erased",
        "Erased",
        "How well each query reads each key after the later tokens have erased what their own keys read of it.",
        (r"\lambda\, q_i^{\top} \Phi_{ij}\, k_j", r"\lambda\, q_i^{\top} \Phi_{ij}\, k_j"),
        ("query", "key"),
        _stage("erased"),
        lambda opened: opened.mixer.erases,
    ),
    "kept": _step(
        "kept",
        "Kept",
        "How much of each token's write is still there: the part that its own key would still read. Decays and, for "
        "delta rules, later keys make it less.",
        (r"\frac{k_j^{\top} \Phi_{ij}\, k_j}{k_j^{\top} k_j}", r"\frac{k_j^{\top} \Phi_{ij}\, k_j}{k_j^{\top} k_j}"),
        ("query", "key"),
        lambda opened: opened.kept,
        lambda opened: opened.mixer.keeps_state,
    ),
    "weights": _step(
        "weights",
        "Weights",
        "How much of each key's value arrives at each query. Plus is carried, minus is taken away."
        " Rows don't sum to 1.",
        (r"A_{ij} = \beta_j\; q_i^{\top} \Phi_{ij}\, k_j", r"A_{ij} = \beta_j\; q_i^{\top} \Phi_{ij}\, k_j"),
        ("query", "key"),
        lambda opened: opened.weights,
        lambda opened: True,
    ),
    "output": _step(
        "output",
        "Output",
        "The values by their weights, summed for each query.",
        (r"O = A V, \quad o_i = \sum_{j} A_{ij}\, v_j", r"O = A V^{\top}, \quad o_i = \sum_{j} A_{ij}\, v_j"),
        ("query", "d_v"),
        lambda opened: opened.mixer.output,
        lambda opened: True,
    ),
}
