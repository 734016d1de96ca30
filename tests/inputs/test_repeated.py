"""The standard test of induction: different random tokens, then the same again, and who looks back to what followed."""

import pytest
import torch

import attention_viz as av
from attention_viz.errors import ShapeError, TraceError, UnsupportedModel
from attention_viz.trace.trace import Trace


def model_of(name: str) -> av.AttentionModel:
    found = av.load(name)
    assert isinstance(found, av.AttentionModel)
    return found


@pytest.fixture(scope="module")
def toy() -> av.AttentionModel:
    return model_of("induction")


def test_the_toy_s_induction_head_comes_out_on_top(toy: av.AttentionModel) -> None:
    text = toy.trace("moon cheese frog ring moon cheese")
    table = av.head_table(text, repeated_random=True)
    assert table["induction_random"].idxmax() == (1, 1)
    assert list(table.columns[-2:]) == ["induction_random", "induction_random_n"]
    assert table.drop(columns=["induction_random", "induction_random_n"]).equals(av.head_table(text))
    assert {name: table.attrs[name] for name in ("rows", "queries")} == {"rows": 6, "queries": 6}
    assert table.attrs["missing"].keys() == {"above"}
    run = toy.repeated_random()
    count = len(run.query_tokens()) // 2
    assert set(table["induction_random_n"]) == {count}
    # By its definition: from each token of the second copy to what followed it in the first.
    first = run.query_tokens().special.index(False)
    rows = torch.arange(first + count, first + 2 * count)
    for layer, head in table.index:
        score = float(run.weights(layer, head)[rows, rows - count + 1].mean())
        assert table["induction_random"][layer, head] == pytest.approx(score, abs=1e-6)


def test_each_token_is_said_twice_and_is_a_word(toy: av.AttentionModel) -> None:
    for seed in range(3):
        run = toy.repeated_random(10, seed)
        tokens = run.query_tokens()
        said = [token for token, special in zip(tokens.ids, tokens.special, strict=True) if not special]
        assert said[:10] == said[10:] and len(set(said)) == 10
        assert run.fidelity.ok
    assert toy.repeated_random(10, 1).query_tokens().ids == toy.repeated_random(10, 1).query_tokens().ids
    assert toy.repeated_random(10, 1).query_tokens().ids != toy.repeated_random(10, 2).query_tokens().ids
    state = torch.random.get_rng_state()
    toy.repeated_random()
    assert torch.equal(state, torch.random.get_rng_state())


def test_what_the_tokenizer_puts_around_every_text_stands_around_this_one() -> None:
    tokens = model_of("coreference").repeated_random(5).query_tokens()
    around = model_of("coreference").trace("the cat").query_tokens()
    assert tokens.special == (True, *(False,) * 10, True)
    assert (tokens.labels[0], tokens.labels[-1]) == (around.labels[0], around.labels[-1])


def test_of_several_texts_it_is_made_once_and_of_some_layers_for_these(toy: av.AttentionModel) -> None:
    one = toy.trace("moon cheese frog ring moon cheese")
    several = av.head_table([one, toy.trace("ring frog moon ring")], repeated_random=True)
    alone = av.head_table(one, repeated_random=True)
    assert several["induction_random"].equals(alone["induction_random"])
    some = av.head_table(toy.trace("moon cheese frog", layers=[1]), repeated_random=True)
    assert some["induction_random"].equals(alone["induction_random"].loc[[1]])
    shares: list[float] = []
    av.head_table(one, repeated_random=True, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1


def test_what_has_no_such_test_says_so(toy: av.AttentionModel, tmp_path: object) -> None:
    toy.trace("moon cheese").save(f"{tmp_path}/moon.safetensors")
    for trace in (Trace.load(f"{tmp_path}/moon.safetensors"), av.scratch("moon cheese")):
        with pytest.raises(TraceError, match="random tokens need a model behind"):
            av.head_table(trace, repeated_random=True)
    with pytest.raises(UnsupportedModel, match="translation reads one text and says another"):
        model_of("translation").repeated_random()
    for wrong in (1, 1000, True):
        with pytest.raises(ShapeError, match="were to be said twice; induction takes 2 to"):
            toy.repeated_random(wrong)
    with pytest.raises(ShapeError, match="seed True was asked for"):
        toy.repeated_random(5, True)
