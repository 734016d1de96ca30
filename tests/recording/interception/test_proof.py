"""What of a model's own code is taken for attention and what isn't, and that no term of a plan may be another."""

from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

import attention_viz as av
from attention_viz.errors import UnsupportedModel
from attention_viz.recording import probe
from attention_viz.recording.interception.plan import CallSite, InterceptionPlan
from tests.models.families import build, eager, ids
from tests.models.own_code import InFloat32, Within, build_own, softmax_alone, with_layers, wrapped_own


@pytest.mark.parametrize("family", ["gptj", "falcon", "deberta-v2", "mpt", "bloom", "mpnet", "xlnet", "roformer"])
def test_the_scale_is_what_the_family_divides_by(family: str) -> None:
    attention = wrapped_own(family).trace_ids(ids(11)).attention(1)
    # DeBERTa divides before it multiplies: its keys come divided already.
    expected = 1.0 if family.startswith("deberta") else attention.query.shape[-1] ** -0.5
    assert attention.scale == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("family", ["gptj", "falcon", "deberta-v2", "roformer", "gpt_neo"])
def test_what_adds_nothing_has_no_bias(family: str) -> None:
    assert wrapped_own(family).trace_ids(ids(11)).attention(0).bias is None


@pytest.mark.parametrize("family", ["bloom", "mpt", "falcon, alibi"])
def test_alibi_is_a_slope_by_distance_for_each_head(family: str) -> None:
    attention = wrapped_own(family).trace_ids(ids(11)).attention(2)
    bias, allowed = attention.bias, attention.allowed
    assert bias is not None
    assert allowed is not None
    last = bias[:, -1]  # (head, key): the last query sees all
    steps = last.diff(dim=-1)
    torch.testing.assert_close(steps, steps[:, :1].expand_as(steps), rtol=1e-3, atol=1e-5)
    assert len({round(float(slope), 4) for slope in steps[:, 0]}) == len(steps), "every head has a slope of its own"
    assert bool((steps[:, 0] > 0).all()), "what is nearer gets more"


def test_relative_positions_are_the_models_own_table() -> None:
    model = build_own("mpnet")
    bias = av.wrap(model).trace_ids(ids(11)).attention(0).bias
    with torch.no_grad():
        expected = model.mpnet.encoder.compute_position_bias(torch.zeros(1, 11, 20))[0]
    assert bias is not None
    torch.testing.assert_close(bias, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()) + 1e-5)


def with_layer(soften: Callable[[Tensor, Tensor], Tensor]) -> nn.Module:
    model = build("bert")
    model.encoder.layer[1].attention.self = Within(soften)
    return model


def changed(site: CallSite, term: str) -> CallSite:
    if term == "heads":
        return replace(site, heads=1)
    if term == "product":
        return replace(site, product=1)
    if term == "products":
        return replace(site, count=site.count + 1)
    return replace(site, ways=frozenset({(("tanh",), ())}))


@pytest.mark.parametrize("term", ["heads", "product", "products", "ways", "count"])
def test_a_plan_with_another_term_is_refused(term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = build_own("xlnet") if term == "product" else with_layers(softmax_alone)
    made = probe.planned_by

    def mutated(*args: object) -> InterceptionPlan:
        plan = made(*args)  # pyright: ignore[reportArgumentType] -- whatever the probe gives
        if term == "count":
            return InterceptionPlan(plan.sites[:-1])
        return InterceptionPlan((changed(plan.sites[0], term), *plan.sites[1:]))

    monkeypatch.setattr(probe, "planned_by", mutated)
    with pytest.raises(UnsupportedModel):
        av.wrap(model)


def test_one_layer_in_code_of_its_own_is_heard_beside_the_others() -> None:
    trace = av.wrap(with_layer(softmax_alone)).trace_ids(ids(9))
    assert trace.provenance.route == "interception"
    assert trace.fidelity.ok
    assert trace.head_count(1) == 5
    assert trace.attention(1).scale == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("why", "soften"),
    [
        ("logits that are bent", lambda scores, _value: torch.tanh(scores).mul(2).softmax(dim=-1)),
        ("logits of each cell by itself", lambda scores, _value: (scores * scores.abs()).softmax(dim=-1)),
        ("weights that are mixed", lambda scores, _value: 0.5 * scores.softmax(-1) + 0.1),
        ("a softmax by hand", lambda scores, _value: scores.exp() / scores.exp().sum(-1, keepdim=True)),
        ("weights moved along", lambda scores, _value: scores.softmax(dim=-1).roll(1, dims=-1)),
    ],
)
def test_what_is_no_softmax_of_scaled_products_is_refused(why: str, soften: Callable[[Tensor, Tensor], Tensor]) -> None:
    with pytest.raises(UnsupportedModel):
        av.wrap(with_layer(soften))
    assert why


def test_weights_taken_twice_are_refused() -> None:
    def twice(scores: Tensor, value: Tensor) -> Tensor:
        weights = scores.softmax(dim=-1)
        return weights + 0 * (weights @ value).sum()

    with pytest.raises(UnsupportedModel):
        av.wrap(with_layer(twice))


class HeadsBeforeRows(Within):
    """The same with heads before rows: of one text nobody can tell."""

    def forward(self, hidden_states: Tensor, *_args: object, **_options: object) -> tuple[Tensor, Tensor]:
        query, key, value = (part(hidden_states).unflatten(-1, (5, 4)).permute(2, 0, 1, 3) for part in self.projections)
        weights = self.soften(query @ key.mT / 2, value)
        return (weights @ value).permute(1, 2, 0, 3).flatten(2), weights


def test_heads_that_a_batch_of_two_mixes_with_rows_are_refused() -> None:
    model = build("bert")
    model.encoder.layer[1].attention.self = HeadsBeforeRows(softmax_alone)
    with pytest.raises(UnsupportedModel, match="two texts in a batch differ from each alone"):
        av.wrap(model)


class OneRow(Within):
    """Code that runs a single text, and no batch."""

    def forward(self, hidden_states: Tensor, *args: object, **options: object) -> tuple[Tensor, Tensor]:
        (hidden,) = hidden_states
        return super().forward(hidden[None], *args, **options)


def test_a_model_that_runs_no_batch_is_shown_alone() -> None:
    model = build("bert")
    model.encoder.layer[1].attention.self = OneRow(softmax_alone)
    assert av.wrap(model).trace_ids(ids(9)).fidelity.ok


class Routed(nn.Module):
    """A mixture of experts that is chosen by a product with a parameter, as a router does."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.table, self.experts = nn.Parameter(torch.randn(1, 3, 20)), nn.Parameter(torch.randn(1, 3, 37))

    def forward(self, hidden: Tensor) -> Tensor:
        return (hidden @ self.table.mT).softmax(dim=-1) @ self.experts


class Spoken(nn.Module):
    """A softmax over words whose vectors it mixes, which is no attention to tokens."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(6)
        self.words, self.out = nn.Parameter(torch.randn(97, 20)), nn.Linear(20, 37)

    def forward(self, hidden: Tensor) -> Tensor:
        return self.out((hidden @ self.words.t()).softmax(dim=-1) @ self.words)


@pytest.mark.parametrize("other", [Routed, Spoken])
def test_a_router_and_a_softmax_over_words_are_no_attention(other: type[nn.Module]) -> None:
    for family, route in (("bert", "interface"), ("mpnet", "interception")):
        model = build(family) if family == "bert" else build_own(family)
        body = model if family == "bert" else model.mpnet
        body.encoder.layer[0].intermediate = other()
        trace = av.wrap(model).trace_ids(ids(9))
        assert (trace.provenance.route, trace.layer_count(), trace.fidelity.ok) == (route, 3, True)


def test_torchs_own_module_is_followed_inside() -> None:
    class Closed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(20, 5, batch_first=True)

        def forward(self, hidden_states: Tensor, *_args: object, **_options: object) -> tuple[Tensor, None]:
            return self.attention(hidden_states, hidden_states, hidden_states, need_weights=False)[0], None

    model = build_own("mpnet")
    model.mpnet.encoder.layer[1].attention.attn = Closed()
    trace = av.wrap(model).trace_ids(ids(9))
    assert trace.fidelity.ok
    assert trace.head_count(1) == 5


@pytest.mark.filterwarnings("ignore:Guards may run slower")  # which torch says of Python 3.13.0
def test_a_compiled_model_is_refused_by_that_name() -> None:
    model = with_layers(softmax_alone)
    model.compile(backend="eager")
    with pytest.raises(UnsupportedModel, match="compiled"):
        av.wrap(model)


@pytest.mark.parametrize("family", ["gptj", "bloom", "deberta-v2, relative", "xlnet"])
def test_a_head_that_is_silenced_writes_nothing(family: str) -> None:
    """Against the same head's columns of W_O set to 0 in a plain model: the same, by another way."""
    plain = build_own(family)
    joins = {
        "gptj": lambda model: model.transformer.h[1].attn.out_proj.weight,
        "bloom": lambda model: model.transformer.h[1].self_attention.dense.weight,
        "deberta-v2, relative": lambda model: model.deberta.encoder.layer[1].attention.output.dense.weight,
        "xlnet": lambda model: model.transformer.layer[1].rel_attn.o,
    }
    with torch.no_grad():
        joined = joins[family](plain)
        (joined[:, 2] if family == "xlnet" else joined[:, 8:12]).zero_()
    expected, _ = eager(plain, input_ids=ids(11))
    output = wrapped_own(family).trace_ids(ids(11), edits=[av.Ablate(1, 2)]).output
    torch.testing.assert_close(output, expected, rtol=1e-4, atol=1e-5 * float(expected.abs().max()))
    assert not torch.allclose(
        output, wrapped_own(family).trace_ids(ids(11)).output, atol=1e-3 * float(output.abs().max())
    )


@pytest.mark.parametrize("family", ["gptj", "gpt_neo", "falcon"])
def test_a_decoder_goes_on_by_its_cache_as_it_does_alone(family: str) -> None:
    model, plain = wrapped_own(family), build_own(family)
    *_, last = model.extend(model.trace_ids(ids(9)), 4)
    with torch.no_grad():
        expected = plain.generate(ids(9), max_new_tokens=4, do_sample=False, attention_mask=torch.ones_like(ids(9)))
    said = last.query_tokens().ids
    assert list(said) == expected[0, : len(said)].tolist()
    assert len(said) > 9
    assert last.fidelity.ok


@pytest.mark.parametrize("family", ["gptj", "bloom", "deberta-v2, relative"])
def test_gradients_of_weights_are_those_of_the_models_own(family: str) -> None:
    trace = wrapped_own(family).trace_ids(ids(9))
    ours = av.gradient(wrapped_own(family), trace, of=(-1, 7))
    found: list[Tensor] = []

    def keep(logits: Tensor, *args: object, **options: object) -> Tensor:
        weights = softmax(logits, *args, **options)
        if weights.requires_grad and weights.shape[-2:] == (9, 9):
            weights.retain_grad()
            found.append(weights)
        return weights

    softmax, patch = nn.functional.softmax, pytest.MonkeyPatch()
    soft = torch.softmax
    with patch.context() as patched:
        patched.setattr(nn.functional, "softmax", keep)
        patched.setattr(
            torch, "softmax", lambda logits, dim: keep(logits, dim=dim) if logits.ndim > 2 else soft(logits, dim)
        )
        build_own(family)(input_ids=ids(9)).logits[0, -1, 7].backward()
    assert len(found) == trace.layer_count()
    for layer, weights in enumerate(found):
        expected = (weights.grad * weights).clamp_min(0).detach().reshape(ours[layer].shape)
        torch.testing.assert_close(ours[layer], expected, rtol=1e-3, atol=1e-5 * float(expected.abs().max()))


def test_threads_that_run_one_model_hear_their_own_calls_only(together: Callable[..., list[object]]) -> None:
    model = wrapped_own("mpnet")
    alone = [model.trace_ids(ids(9, start)).attention(2).weights for start in range(6)]
    found = together(*(lambda start=start: model.trace_ids(ids(9, start)).attention(2).weights for start in range(6)))
    for one, other in zip(found, alone, strict=True):
        assert isinstance(one, Tensor)
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64])
def test_other_precisions_are_within_their_bound(dtype: torch.dtype) -> None:
    model = with_layers(softmax_alone, InFloat32)
    trace = av.wrap(model.to(dtype)).trace_ids(ids(9))
    assert trace.provenance.route == "interception"
    assert {one.dtype for one in model.parameters()} == {dtype}, "the model stays as it was"
    assert trace.fidelity.ok
    assert trace.attention(0).query.dtype == torch.float32, "this model multiplies queries and keys in float32"
    assert trace.provenance.dtype == str(dtype).removeprefix("torch.")


def test_a_placeholder_without_its_picture_is_refused_by_name() -> None:
    model = build("llama")
    model.config.image_token_id = 16
    wrapped = av.wrap(model)
    assert wrapped.trace_ids(torch.tensor([[5, 17, 27]])).fidelity.ok
    with pytest.raises(av.UnusableText, match="token 16"):
        wrapped.trace_ids(torch.tensor([[5, 16, 27]]))
