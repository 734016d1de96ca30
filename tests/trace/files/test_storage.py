from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors import safe_open

from attention_viz.errors import TraceError
from attention_viz.operation import masks
from attention_viz.operation.attention import Attention, attend
from attention_viz.operation.terms import terms_of
from attention_viz.trace.tokens import Tokens
from attention_viz.trace.trace import Fidelity, Layer, Provenance, Trace
from tests.trace.files.taken_apart import put_together, taken_apart

pytestmark = pytest.mark.usefixtures("unchecked_module")

N, HEADS, GROUPS, D_K, D_V, D_MODEL = 5, 4, 2, 3, 7, 11
TERMS = [term.name for term in terms_of(Attention) if not term.is_number]
NUMBERS = [term.name for term in terms_of(Attention) if term.is_number]
AROUND = ("embeddings", "joined", "unrotated_query", "unrotated_key")
FIDELITY = Fidelity(1.5e-7, 2.5e-8, 1e-5, "itself, <b>plainly</b>", 0.25)


def full_layer(label: str, allowed: torch.Tensor | None, dtype: torch.dtype = torch.float32) -> Layer:
    def random(*shape: int) -> torch.Tensor:
        return torch.randn(shape).to(dtype)

    call = attend(
        random(HEADS, N, D_K),
        random(GROUPS, N, D_K),
        random(GROUPS, N, D_V),
        allowed,
        scale=0.7,
        bias=random(HEADS, 1, N),
        softcap=30.0,
        sinks=random(HEADS),
    )
    around = {"embeddings": random(N, D_MODEL), "joined": random(N, D_MODEL)}
    return Layer(call, label, **around, unrotated_query=random(HEADS, N, D_K), unrotated_key=random(GROUPS, N, D_K))


def full_trace(labels: tuple[str, ...] = ("[CLS]", "a", "##b", "…", "[PAD]"), **provenance: Any) -> Trace:
    """A trace in which everything that can be kept is."""
    allowed = masks.causal(N)
    tokens = Tokens(
        labels,
        (101, 7, 8, 2**31 - 1, 0),
        (None, 0, 0, 1, None),
        (True, False, False, False, True),
        (False,) * 4 + (True,),
        (None, 0, 0, 1, None),
    )
    settings = {"model": "a model", "text": "a b", "versions": {"torch": "2"}, "edits": ("one", "two")} | provenance
    return Trace(
        {
            "decoder": (
                full_layer("0", allowed),
                full_layer("3b", allowed, torch.bfloat16),
                Layer(attend(*[torch.randn(1, N, 2)] * 3), "x"),
            )
        },
        {"decoder": tokens},
        {"decoder": tokens},
        torch.randn(N, D_MODEL).requires_grad_(),
        Provenance(**settings),
        FIDELITY,
    )


def same(one: torch.Tensor | None, other: torch.Tensor | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and torch.equal(one, other)


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("traces") / "good.safetensors"
    full_trace().save(path)
    return path


def test_saving_and_loading_loses_nothing(tmp_path: Path) -> None:
    trace, path = full_trace(), tmp_path / "a trace"
    trace.save(path)
    loaded = Trace.load(str(path))
    assert [one.name for one in tmp_path.iterdir()] == ["a trace"]
    assert loaded.streams == trace.streams
    assert loaded.query_tokens() == trace.query_tokens() and loaded.key_tokens() == trace.key_tokens()
    assert loaded.provenance == trace.provenance and loaded.fidelity == FIDELITY
    assert same(loaded.output, trace.output) and not loaded.output.requires_grad
    for number in range(3):
        ours, theirs = trace.layer(number), loaded.layer(number)
        assert ours.label == theirs.label
        assert all(same(getattr(ours, name), getattr(theirs, name)) for name in AROUND)
        assert all(getattr(ours.attention, name) == getattr(theirs.attention, name) for name in NUMBERS)
        assert all(same(getattr(ours.attention, name), getattr(theirs.attention, name)) for name in TERMS)
        assert same(ours.attention.weights, theirs.attention.weights)


def test_the_trace_that_is_saved_here_has_every_term_there_is() -> None:
    call = full_trace().attention(0)
    assert not [name for name in (*TERMS, *NUMBERS) if getattr(call, name) is None]


def test_a_file_that_says_nothing_of_sentences_is_read(saved: Path, tmp_path: Path) -> None:
    header, ours, body = taken_apart(saved)
    for tokens in (ours["streams"]["decoder"][axis] for axis in ("queries", "keys")):
        del tokens["sentence"]
    older = put_together(tmp_path / "older", header, body, ours)
    assert Trace.load(older).query_tokens().sentence == (None,) * N


def test_a_loaded_trace_can_be_saved_again_unchanged(saved: Path, tmp_path: Path) -> None:
    Trace.load(saved).save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == saved.read_bytes()


def test_a_mask_that_layers_share_is_stored_once(saved: Path) -> None:
    with safe_open(saved, framework="pt") as file:
        kinds = [file.get_tensor(name).dtype for name in file.keys()]
    assert kinds.count(torch.bool) == 1


def test_numbers_that_are_not_numbers_come_back_as_such(tmp_path: Path) -> None:
    trace = full_trace()
    odd = Trace(
        trace.layers,
        trace.queries,
        trace.keys,
        trace.output,
        trace.provenance,
        Fidelity(float("nan"), float("inf"), 1e-5, ""),
    )
    odd.save(tmp_path / "odd")
    loaded = Trace.load(tmp_path / "odd").fidelity
    assert loaded.output_error is None and loaded.weight_error == float("inf") and not loaded.ok


# Half a character is no text, but for the bytes of a broken one, which merged pieces may have as their label.
any_text = st.text(
    (st.characters() | st.characters(min_codepoint=0xDC80, max_codepoint=0xDCFF, categories=["Cs"])).filter(
        lambda one: not "\ud800" <= one < "\udc80" and not "\udcff" < one <= "\udfff"
    ),
    max_size=12,
)


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.tuples(*[any_text] * N),
    st.none() | any_text,
    st.dictionaries(any_text, any_text, max_size=3),
    st.lists(any_text, max_size=3),
)
def test_any_text_survives(
    tmp_path: Path, labels: tuple[str, ...], text: str | None, versions: dict[str, str], edits: list[str]
) -> None:
    trace = full_trace(labels, text=text, second_text=text, revision=text, versions=versions, edits=tuple(edits))
    trace.save(tmp_path / "text")
    loaded = Trace.load(tmp_path / "text")
    assert loaded.query_tokens() == trace.query_tokens() and loaded.provenance == trace.provenance


def test_a_name_of_many_lines_or_with_markup_is_only_text(tmp_path: Path) -> None:
    full_trace(model="<script>\n</script>", text="</script><!--").save(tmp_path / "markup")
    assert Trace.load(tmp_path / "markup").provenance.model == "<script>\n</script>"


@pytest.mark.parametrize("place", ["missing/file", "."])
def test_a_place_that_nothing_can_be_written_to_is_named(place: str, tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="can't write the trace to"):
        full_trace().save(tmp_path / place)
