import ast
import inspect
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from attention_viz.edits.kinds.ablation import Ablate
from attention_viz.edits.kinds.masks import Allow, Block
from attention_viz.edits.kinds.replacement import Replace
from attention_viz.edits.kinds.temperature import Temperature
from attention_viz.errors import AttentionVizError, ShapeError, TextTooLong, UnsupportedModel, UnusableText
from attention_viz.operation import masks
from attention_viz.protocol.fitting import Fit
from attention_viz.scratch import model as from_scratch
from attention_viz.scratch.model import Scratch, scratch
from attention_viz.scratch.vectors import sinusoidal, word_vectors

TEXT = "The bank of the river was flooded"


def test_a_text_becomes_the_same_kind_of_trace_as_any_other() -> None:
    trace = scratch(TEXT, d_model=12, heads=3)
    assert trace.streams == ("encoder",) and trace.layer_count() == 1 and trace.head_count(0) == 3
    assert trace.query_tokens() is trace.key_tokens()
    assert trace.query_tokens().labels == tuple(TEXT.split())
    assert trace.query_tokens().words == (0, 1, 2, 3, 4, 5, 6)
    assert trace.attention(0).query.shape == (3, 7, 4)
    assert not trace.output.requires_grad
    assert trace.output is trace.layer(0).joined
    assert trace.provenance.text == TEXT and trace.provenance.model == "scratch"


def test_every_step_follows_from_the_one_before() -> None:
    model = Scratch(d_model=12, heads=3)
    trace, module = model.trace(TEXT), model.module()
    x, call = trace.layer(0).embeddings, trace.attention(0)
    assert x is not None
    torch.testing.assert_close(x, model.embed(TEXT.split()))
    query, key, value = (
        (x @ part.weight.T).reshape(7, 3, 4).transpose(0, 1) for part in (module.query, module.key, module.value)
    )
    torch.testing.assert_close(call.query, query)
    weights = (query @ key.mT / math.sqrt(4)).softmax(-1)
    torch.testing.assert_close(call.weights, weights)
    torch.testing.assert_close(trace.output, (weights @ value).transpose(0, 1).reshape(7, 12) @ module.output.weight.T)


def test_it_is_measured_against_torchs_own_module() -> None:
    fidelity = scratch(TEXT).fidelity
    assert fidelity.ok and fidelity.bound == 1e-5 and fidelity.seconds > 0
    assert "torch.nn.MultiheadAttention" in fidelity.reference
    assert Scratch(d_model=10, heads=5, seed=3).verify(TEXT).ok


def test_a_wrong_number_would_be_noticed() -> None:
    trace = scratch(TEXT)
    trace.attention(0).key[0, 2, 1] += 0.01
    assert trace.fidelity.weight_error > 1e-4 and not trace.fidelity.ok
    trace = scratch(TEXT)
    trace.output[3, 2] += 0.01
    assert trace.fidelity.output_error > 1e-4 and not trace.fidelity.ok


@pytest.mark.parametrize(
    "allowed",
    [
        masks.sliding_window(7, 2),
        masks.causal(7),
        torch.eye(7).bool() | (torch.arange(2)[:, None, None] == 1),
        torch.tensor([[True, False, True, True, True, True, False]]),
        masks.causal(7) & (torch.arange(7) > 2)[:, None],
        torch.zeros(7, 7, dtype=torch.bool),
    ],
)
def test_a_mask_blocks_and_stays_as_near_to_torch(allowed: Tensor) -> None:
    trace = scratch(TEXT, allowed=allowed)
    call = trace.attention(0)
    assert not call.weights[~allowed.expand(call.shape)].any()
    assert trace.output.isfinite().all()
    assert trace.fidelity.ok and trace.fidelity.reference.endswith("mask")


def test_only_the_causal_mask_makes_it_a_decoder() -> None:
    assert scratch(TEXT, allowed=masks.causal(7)).streams == ("decoder",)
    assert scratch(TEXT, allowed=masks.prefix(7, 2)).streams == ("encoder",)
    assert scratch(TEXT, allowed=torch.ones(7, 7, dtype=torch.bool)).streams == ("encoder",)


def test_a_word_has_the_same_vector_in_any_text_whatever_its_capitals() -> None:
    vectors = word_vectors(["The", "bank", "the", "e\u0301t\u00e9", "\u00c9TE\u0301"], 8, seed=0)
    assert torch.equal(vectors[0], vectors[2]) and torch.equal(vectors[3], vectors[4])
    assert torch.equal(word_vectors(["my", "bank"], 8, seed=0)[1], vectors[1])
    assert not torch.allclose(vectors[0], vectors[1])
    ids = scratch("The bank the").query_tokens().ids
    assert ids[0] == ids[2] != ids[1]
    assert scratch("bank", seed=5).query_tokens().ids == (ids[1],)


def test_numbers_are_the_same_on_any_machine() -> None:
    # Written down once; a change of theirs would change every picture that was ever made from scratch.
    written_down = torch.tensor([[-0.8271225, 0.0976410, 1.1161984, -0.6966438]])
    torch.testing.assert_close(word_vectors(["bank"], 4, seed=0), written_down, rtol=0, atol=1e-6)
    assert scratch("bank").query_tokens().ids == (3630219130,)


def test_another_seed_gives_other_vectors_and_other_weights() -> None:
    one, other = Scratch(seed=0), Scratch(seed=1)
    assert not torch.allclose(one.embed(["bank"]), other.embed(["bank"]))
    assert not torch.allclose(one.module().query.weight, other.module().query.weight)
    names = ("query", "key", "value", "output")
    weights = [getattr(one.module(), name).weight for name in names]
    assert all(not torch.allclose(a, b) for i, a in enumerate(weights) for b in weights[:i])


@pytest.mark.parametrize("seed", range(4))
def test_attention_is_visibly_not_uniform(seed: int) -> None:
    weights = scratch(TEXT, seed=seed).attention(0).weights
    assert weights.amax(-1).mean() > 2 / 7
    assert weights.amax(-1).mean() < 0.9


def test_numbers_have_mean_0_and_variance_1() -> None:
    vectors = word_vectors([str(i) for i in range(400)], 16, seed=2)
    assert abs(float(vectors.mean())) < 0.03 and abs(float(vectors.var()) - 1) < 0.03


@pytest.mark.parametrize("d_model", [1, 2, 7, 8])
def test_sinusoidal_positions_are_those_of_the_paper(d_model: int) -> None:
    expected = [
        [
            math.sin(place / 10_000 ** (i / d_model)) if i % 2 == 0 else math.cos(place / 10_000 ** ((i - 1) / d_model))
            for i in range(d_model)
        ]
        for place in range(5)
    ]
    torch.testing.assert_close(sinusoidal(5, d_model), torch.tensor(expected))


def test_without_positions_words_in_another_order_give_the_same_in_that_order() -> None:
    there, back = (scratch(text, positions="none") for text in ("cat saw dog", "dog saw cat"))
    torch.testing.assert_close(back.output, there.output.flip(0))
    torch.testing.assert_close(back.attention(0).weights, there.attention(0).weights.flip(1, 2))
    there, back = (scratch(text) for text in ("cat saw dog", "dog saw cat"))
    assert not torch.allclose(back.output, there.output.flip(0))


def test_an_odd_width_takes_positions_too() -> None:
    assert scratch(TEXT, d_model=7, heads=1).fidelity.ok


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"d_model": 0}, "d_model must be a whole number, 1 or more; got 0"),
        ({"d_model": -8}, "d_model must be a whole number, 1 or more; got -8"),
        ({"heads": 0}, "heads must be a whole number, 1 or more; got 0"),
        ({"d_model": 8, "heads": 3}, "d_model 8 isn't a multiple of 3 heads"),
        ({"d_model": 2048}, "d_model up to 1024; got 2048"),
        ({"positions": "learned"}, "unknown positions 'learned'; choose sinusoidal, none"),
    ],
)
def test_settings_that_make_no_module_are_refused_by_name(settings: dict[str, Any], message: str) -> None:
    for make in (lambda: scratch(TEXT, **settings), lambda: Scratch(**settings)):
        with pytest.raises(ShapeError, match=message):
            make()


def test_a_mask_of_the_wrong_size_is_refused() -> None:
    with pytest.raises(ShapeError, match=r"allowed .*\(2, 7, 7\); got \(6, 6\)"):
        scratch(TEXT, allowed=masks.causal(6))


@pytest.mark.parametrize(("text", "message"), [("", "is empty"), (" \n\t", "is empty"), ("\u200b\x00", "invisible")])
def test_a_text_with_nothing_to_see_is_refused(text: str, message: str) -> None:
    for ask in (scratch, Scratch().trace, Scratch().verify):
        with pytest.raises(UnusableText, match=message):
            ask(text)
    assert Scratch().fit(text) == Fit(text, "", 0, 1024)


@pytest.mark.parametrize("text", ["x", "👩‍👩‍👧", "<script>alert('x')</script>", "=cmd()", "שלום", "x\ud800y", "'"])
def test_odd_texts_are_read(text: str) -> None:
    trace = scratch(text)
    assert trace.fidelity.ok and trace.output.isfinite().all()


def test_a_model_reads_up_to_its_limit_and_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Scratch().limit == 1024
    monkeypatch.setattr(Scratch, "limit", 11)
    model, text = Scratch(), "word " * 12
    with pytest.raises(TextTooLong, match=r"scratch .* 11 tokens.* 12") as raised:
        model.trace(text)
    assert raised.value.count == 12 and raised.value.limit == 11
    fit = model.fit(text)
    assert fit.kept + fit.cut == text and fit.count == 12
    assert len(model.trace(fit.kept).query_tokens()) == 11
    assert len(scratch(text).query_tokens()) == 12
    assert model.fit("one two three", limit=2) == Fit("one two", " three", 3, 2)


def test_a_model_takes_edits_and_says_so() -> None:
    edit = Allow(masks.causal(7), head=1)
    trace = Scratch().trace(TEXT, edits=[edit])
    assert not trace.weights(0, 1).triu(1).any()
    torch.testing.assert_close(trace.weights(0, 0), scratch(TEXT).weights(0, 0))
    assert trace.streams == ("encoder",) and trace.fidelity.ok
    assert trace.provenance.edits == (str(edit),)
    with pytest.raises(ShapeError, match=r"\(query, key\) = \(7, 7\)"):
        Scratch().trace(TEXT, edits=[Allow(masks.causal(6))])


def test_what_the_model_has_no_place_for_is_refused_by_name() -> None:
    with pytest.raises(UnusableText, match="scratch reads one sentence only"):
        Scratch().trace(TEXT, "And another")
    with pytest.raises(UnsupportedModel, match="scratch has an encoder only, so it takes no target"):
        Scratch().trace(TEXT, target="Die Bank")
    for second in (None, ""):
        assert Scratch().trace(TEXT, second).streams == ("encoder",)


def test_a_model_is_the_same_as_the_function() -> None:
    model = Scratch(d_model=6, heads=3, seed=4, positions="none")
    assert torch.equal(model.trace(TEXT).output, scratch(TEXT, d_model=6, heads=3, seed=4, positions="none").output)
    assert model.name == "scratch" and model == Scratch(6, 3, 4, "none")
    assert list(inspect.signature(Scratch).parameters) == ["d_model", "heads", "seed", "positions"]
    with pytest.raises(AttributeError):
        model.seed = 5  # pyright: ignore[reportAttributeAccessIssue] -- that is the claim


def test_it_has_the_surface_of_a_pretrained_model() -> None:
    # Read rather than imported, which would take transformers along.
    package = Path(from_scratch.__file__).parents[1]
    files = ("protocol/model.py", "models/model.py")
    trees = [ast.parse((package / name).read_text()) for name in files]
    classes = {node.name: node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef)}
    theirs = [line for name in ("Model", "AttentionModel") for line in classes[name].body]
    methods = {node.name: node.args for node in theirs if isinstance(node, ast.FunctionDef)}
    for name in ("trace", "trace_padded", "run_batch", "generate", "extend", "candidates", "labels", "verify", "fit"):
        taken = [one.arg for one in (*methods[name].args, *methods[name].kwonlyargs)]
        # Our own module is done at once and small, and reads words alone.
        others = ("progress", "heads", "queries", "picture", "pictures", "video", "sound")
        expected = [one for one in taken if one not in others]
        assert list(inspect.signature(getattr(Scratch, name)).parameters) == expected
    for name in ("name", "limit", "stream", "layer_count", "facts"):
        assert hasattr(Scratch, name) and name in methods


def test_the_trace_can_be_made_again_from_what_it_says_of_itself() -> None:
    settings = scratch(TEXT, d_model=6, heads=3, seed=-4, positions="none").provenance.revision
    assert settings == "d_model=6 heads=3 seed=-4 positions=none"


def test_every_refusal_can_be_caught_as_one() -> None:
    with pytest.raises(AttentionVizError):
        scratch("")


def test_the_matrices_of_the_module_make_its_query_and_join_its_heads() -> None:
    trace, known = scratch("The cat sat on mat", d_model=6, heads=3, seed=4), Scratch(6, 3, 4).projections()
    layer = trace.layer(0)
    assert layer.embeddings is not None
    assert layer.joined is not None
    query = layer.embeddings @ known["query"].weight
    assert_close(query[:, 2:4], layer.attention.query[1])
    assert_close(layer.attention.output.transpose(0, 1).flatten(1) @ known["output"].weight, layer.joined)
    with pytest.raises(ShapeError, match="no layer 1; scratch has one layer"):
        Scratch().projections(1)


@pytest.mark.parametrize("head", [0, 1])
def test_a_silenced_or_averaged_head_hands_on_just_that(head: int) -> None:
    model, before = Scratch(d_model=12, heads=3), scratch(TEXT, d_model=12, heads=3)
    for to in ("zero", "mean"):
        after = model.trace(TEXT, edits=[Ablate(0, head, to)])
        outputs = before.attention(0).output.clone()
        outputs[head] = 0 if to == "zero" else outputs[head].mean(dim=0)
        torch.testing.assert_close(
            after.output, outputs.transpose(0, 1).reshape(7, 12) @ model.module().output.weight.T
        )
        torch.testing.assert_close(after.attention(0).weights, before.attention(0).weights)


def test_weights_are_cooled_blocked_and_replaced_as_by_hand() -> None:
    model, before = Scratch(d_model=12, heads=3), scratch(TEXT, d_model=12, heads=3)
    given = torch.rand(7, 7, generator=torch.Generator().manual_seed(1)).softmax(-1)
    after = model.trace(TEXT, edits=[Temperature(0.5, 0, 1), Block(2, 4, 0, 1), Replace(0, 2, given)])
    logits = before.attention(0).scaled[1] / 0.5
    logits[2, 4] = -torch.inf
    weights = torch.stack([before.weights(0, 0), logits.softmax(-1), given])
    torch.testing.assert_close(after.attention(0).weights, weights)
    joined = (weights @ before.attention(0).value).transpose(0, 1).reshape(7, 12) @ model.module().output.weight.T
    torch.testing.assert_close(after.output, joined)


def test_edits_leave_the_module_as_it_was_and_carry_its_fidelity() -> None:
    model, before = Scratch(), scratch(TEXT)
    after = model.trace(TEXT, edits=[Ablate(0, 0), Temperature(2)])
    assert torch.equal(model.trace(TEXT).output, before.output)
    assert after.fidelity.ok and after.fidelity.reference == f"{before.fidelity.reference}, before the edits"
    assert after.fidelity.output_error == before.fidelity.output_error
    with pytest.raises(ShapeError, match="head 2"):
        model.trace(TEXT, edits=[Ablate(0, 2)])


def test_a_causal_mask_makes_a_decoder_whatever_axes_stand_before_it() -> None:
    causal = masks.causal(3)
    for allowed in (causal, causal[None], causal.expand(2, 3, 3)):
        assert scratch("a b c", allowed=allowed).streams == ("decoder",)
    other = causal.expand(2, 3, 3).clone()
    other[1, 0, 2] = True
    assert scratch("a b c", allowed=other).streams == ("encoder",)
