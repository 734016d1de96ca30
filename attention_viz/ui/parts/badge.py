"""The badge: how far our attention's output is from the model's own."""

import math
from typing import TYPE_CHECKING, Literal

import streamlit as st

from attention_viz.edits.words import is_eviction, listed
from attention_viz.ui.parts.markdown import plain

if TYPE_CHECKING:
    from attention_viz.trace.trace import Trace

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_OWN_CODE = (
    " This model has its own attention code. We replaced its softmaxes and weighted sums with ours, after proving at "
    "load time which tensors are the queries and keys."
)


class Badge:
    """The run's fidelity; a click on the badge explains the comparison."""

    def __init__(self, key: str = "badge") -> None:
        """Reserve the slot."""
        self._key = key
        self._place = st.empty()
        self.wait()

    def wait(self) -> None:
        """Show progress; writing also ends a departed visitor's run."""
        self._place.badge("Verifying …", color="gray")

    def show(self, trace: "Trace", *, from_file: bool, switched: bool = False) -> None:
        """Show the fidelity; for a trace file, that nothing was compared."""
        colour, words = _verdict(trace, from_file, switched)
        with self._place.popover(f":{colour}[{plain(words)}]", type="tertiary", key=self._key):
            st.markdown(plain(comparison_words(trace)))


def _verdict(trace: "Trace", from_file: bool, switched: bool) -> tuple[Literal["green", "orange", "red"], str]:
    """Return colour and words, "Verified" or "Not verified" first."""
    colour, words = _compared(trace, from_file, switched)
    return colour, f"{words}; part left out" if trace.provenance.left_out else words


def _compared(trace: "Trace", from_file: bool, switched: bool) -> tuple[Literal["green", "orange", "red"], str]:
    fidelity = trace.fidelity
    if fidelity.output_error is None or fidelity.largest_error is None:
        handed = fidelity.weight_error is not None
        return "orange", f"Not verified: {'weights passed in' if handed else 'nothing was compared'}"
    far = power_of_ten(fidelity.largest_error)
    if from_file:
        far = power_of_ten(max(fidelity.largest_error, trace.provenance.stored_weight_error))
        return "orange", f"Not verified here: the file says {far} off"
    # A pretrained model's edited run has no reference, so the fidelity is that of the run without edits.
    if _evicted(trace):
        state = "Verified" if fidelity.ok else "Not verified"
        return "orange" if fidelity.ok else "red", f"{state} to {far}; not the model's own"
    when = _before(trace) if _unedited(trace) else " before switches" if switched else ""
    if fidelity.ok and fidelity.largest_error == 0:
        return "green", f"Verified{when}: no difference"
    if fidelity.ok:
        rounding = "" if fidelity.within_bound else ", rounding"
        return "green", f"Verified{when}: {far}{rounding}" if when else f"Verified to {far}{rounding}"
    fault = "a fault, " if fidelity.is_fault else ""
    return "red", f"Not verified{when}: {fault}{far} off the model's own result"


def _before(trace: "Trace") -> str:
    return " unmasked" if _edit(trace) == "mask" else " before change"


def _unedited(trace: "Trace") -> bool:
    return bool(trace.provenance.edits) and trace.fidelity.reference.endswith("before the edits")


def comparison_words(trace: "Trace") -> str:
    """Explain the badge."""
    fidelity = trace.fidelity
    if fidelity.largest_error is None:
        return f"This run was compared with {fidelity.reference}."
    if fidelity.output_error is None:
        return (
            f"Nothing ran here: these are {fidelity.reference}. The weights drawn differ from them by at most "
            f"{power_of_ten(fidelity.largest_error)}, relative to the largest."
        )
    rows = "" if fidelity.rows is None else f" of these {fidelity.rows:,} rows, in all layers and heads,"
    error = fidelity.weight_error
    weights = "; the weights weren't compared" if error is None else f" and in any weight{rows} {power_of_ten(error)}"
    beyond = "" if fidelity.within_bound else f" This comparison is {fidelity.rule}."
    by = _OWN_CODE if trace.provenance.route == "interception" else ""
    return (
        f"You see the run with our attention. The same text ran again in {fidelity.reference}. The largest "
        f"difference in the output is {power_of_ten(fidelity.output_error)}{weights}, relative to the largest number "
        f"there. Differences up to {power_of_ten(fidelity.bound)} are rounding: floating-point sums depend on the "
        f"order of addition.{beyond}{by}"
    ) + (_beside_words(trace) + _edit_words(trace) + _stored_words(trace))


def _beside_words(trace: "Trace") -> str:
    parts = trace.provenance.left_out
    if not parts:
        return ""
    return f" The model also attends in {listed(parts)}, which isn't shown. The comparison of outputs includes it."


def _stored_words(trace: "Trace") -> str:
    said = trace.provenance.stored_in_words
    return f" In this run, {said}." if said else ""


def _edit_words(trace: "Trace") -> str:
    if _evicted(trace):
        (edit,) = trace.provenance.edits
        return f" This isn't the model's own output: {edit.partition(': ')[2]}."
    return f" The {_edit(trace)} was added afterwards, in the same place." if _unedited(trace) else ""


def _evicted(trace: "Trace") -> bool:
    edits = trace.provenance.edits
    return bool(edits) and all(map(is_eviction, edits))


def _edit(trace: "Trace") -> str:
    return "mask" if all(edit.startswith("allow") for edit in trace.provenance.edits) else "change"


def power_of_ten(error: float) -> str:
    """Write a small number with one digit, such as 2×10⁻⁷."""
    if error == 0 or not math.isfinite(error):
        return f"{error:g}"
    digit, exponent = f"{error:.0e}".split("e")
    return f"{digit}×10{str(int(exponent)).translate(_SUPERSCRIPTS)}"
