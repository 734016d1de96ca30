"""What a head mostly does: planted patterns are called by their names, and the jobs of known heads are told."""

import math
import re
from dataclasses import replace
from itertools import pairwise

import pandas
import pytest
import torch

import attention_viz as av
from attention_viz.errors import TraceError
from attention_viz.models.model import AttentionModel
from attention_viz.trace.trace import Trace
from tests.analysis.planted import planted, tokens_of, trace_of
from tests.shipped import shipped

TEXT = ("[CLS]", "a", "moon", ",", "a", "frog", ".", "moon", "frog", "[SEP]")
COUNT = len(TEXT)
SHARES = [name for name in av.ROLES if name != "mixed"]


def pattern(keys: dict[int, int], weight: float) -> torch.Tensor:
    """Rows that give a weight to one key each, and the rest to all others alike."""
    rows = torch.full((COUNT, COUNT), 1 / COUNT, dtype=torch.float64)
    for query, key in keys.items():
        rows[query] = (1 - weight) / (COUNT - 1)
        rows[query, key] = weight
    return rows


def everywhere(key: int) -> dict[int, int]:
    return dict.fromkeys(range(COUNT), key)


PLANTED = {
    "previous": {query: query - 1 for query in range(1, COUNT)},
    "next": {query: query + 1 for query in range(COUNT - 1)},
    "itself": {query: query for query in range(COUNT)},
    "same token": {4: 1, 7: 2, 8: 5},
    "induction": {4: 2, 7: 3, 8: 6},
    "punctuation": everywhere(3),
    "first": everywhere(0),
}


@pytest.mark.parametrize("role", PLANTED)
def test_a_pattern_that_was_put_in_is_called_by_its_name(role: str) -> None:
    weights = torch.stack([pattern(PLANTED[role], 0.9), pattern({}, 0.0)])[None]
    table = av.roles(trace_of(weights, tokens_of(TEXT)))
    assert table.index.names == ["layer", "head"]
    assert list(table.columns) == ["role", "score", "label", *SHARES]
    assert table.loc[(0, 0), "role"] == role
    assert table.loc[(0, 0), "score"] == table.loc[(0, 0), role] == pytest.approx(0.9, abs=0.11)
    assert tuple(table.loc[(0, 1), ["role", "score"]]) == ("broad", pytest.approx(1.0))


def test_heads_are_named_in_the_words_of_the_field_beside_the_keys_that_stay() -> None:
    names = (
        "previous-token head", "next-token head", "patch-above head", "self head", "duplicate-token head",
        "induction head", "punctuation head", "attention sink", "broad head", "mixed head",
    )  # fmt: skip
    assert tuple(role.head() for role in av.ROLES.values()) == names
    assert [av.ROLES[name].head("patch") for name in ("previous", "next", "above", "first")] == [
        "left-patch head", "right-patch head", "patch-above head", "attention sink",
    ]  # fmt: skip
    assert [av.ROLES[name].head("frame") for name in ("previous", "next")] == ["previous-frame head", "next-frame head"]
    table = av.roles(shipped("induction").trace("moon cheese frog ring moon cheese frog ring"))
    assert table["label"].tolist() == [av.ROLES[role].head() for role in table["role"]]
    assert table.loc[(1, 1), ["role", "label"]].tolist() == ["induction", "induction head"]


def test_even_rows_of_a_short_text_do_no_job_however_much_they_give_a_key() -> None:
    words = ("the", "bank", "of", "the", "river", "was", "flooded")
    even = torch.ones(7, 7).tril().double()
    even /= even.sum(dim=-1, keepdim=True)
    table = av.roles(trace_of(even[None, None], tokens_of(words), "decoder"))
    assert table.loc[(0, 0), "itself"] >= av.ROLES["itself"].threshold
    assert table.loc[(0, 0), "role"] == "broad"


@pytest.mark.parametrize("role", ["previous", "next", "itself", "punctuation"])
def test_below_its_threshold_it_is_not_called_so(role: str) -> None:
    threshold = av.ROLES[role].threshold
    # A mark itself has only the other one to look at.
    for weight, expected in ((threshold + 0.06, True), (threshold - 0.02, False)):
        # A third key takes the rest, so that no other role gets it.
        rows = pattern(PLANTED[role], weight)
        rows[:, [0, 9]] += 3
        rows[torch.arange(COUNT), [PLANTED[role].get(query, 0) for query in range(COUNT)]] = 0
        rows = rows / rows.sum(dim=-1, keepdim=True) * (1 - weight)
        rows[torch.arange(COUNT), [PLANTED[role].get(query, 0) for query in range(COUNT)]] = weight
        found = av.roles(trace_of(rows[None, None], tokens_of(TEXT))).iloc[0]
        assert (found["role"] == role) is expected
        assert found["role"] in (role, "first")


def test_a_head_that_looks_at_one_word_from_everywhere_goes_on_with_no_pattern() -> None:
    weights = torch.stack([pattern(everywhere(2), 0.9), pattern(PLANTED["induction"], 0.9)])[None]
    table = av.roles(trace_of(weights, tokens_of(TEXT)))
    assert abs(table.loc[(0, 0), "induction"]) < 0.1 and table.loc[(0, 0), "role"] == "mixed"
    assert table.loc[(0, 1), "role"] == "induction"


def test_a_mark_at_the_beginning_is_rested_on_and_no_punctuation() -> None:
    tokens = tokens_of(("“", "moon", ",", "frog", "near", "home"))
    weights = torch.full((1, 1, 6, 6), 0.01, dtype=torch.float64)
    weights[..., 0] = 1
    found = av.roles(trace_of(weights, tokens, "decoder")).iloc[0]
    assert found["role"] == "first" and found["punctuation"] < 0.05


def test_of_a_head_that_is_mixed_the_score_is_what_it_does_most() -> None:
    found = av.roles(trace_of(pattern(everywhere(2), 0.9)[None, None], tokens_of(TEXT))).iloc[0]
    jobs = [name for name, role in av.ROLES.items() if role.job]
    assert found["role"] == "mixed"
    assert found["score"] == max(found[jobs]) < min(av.ROLES[name].threshold for name in jobs)


def naive(weights: list[list[float]], tokens: av.Tokens, *, back: bool) -> dict[str, float]:
    """The shares of one head, cell by cell."""
    count = len(tokens)
    resting = [tokens.special[key] or (back and key == 0) for key in range(count)]
    counted = [query for query in range(count) if not tokens.special[query] and not (back and query == 0)]
    signs = [key for key in range(count) if re.fullmatch(r"[^\w\s]+", tokens.texts[key]) and not resting[key]]

    def above(query: int, key: int) -> float:
        others = [weights[other][key] for other in counted if other != query and weights[other][key] > 0]
        return weights[query][key] - sum(others) / max(1, len(others) if weights[query][key] > 0 else len(others) - 1)

    rows: dict[str, list[float]] = {name: [] for name in SHARES}
    for query in counted:
        row = weights[query]
        seen = query + 1 if back else count
        if query > 0 and not resting[query - 1]:
            rows["previous"].append(row[query - 1])
        if query + 1 < count and not resting[query + 1]:
            rows["next"].append(row[query + 1])
        rows["itself"].append(row[query])
        if earlier := [key for key in range(query) if tokens.ids[key] == tokens.ids[query]]:
            rows["same token"].append(sum(above(query, key) for key in earlier))
            rows["induction"].append(above(query, earlier[-1] + 1))
        if marks := [key for key in signs if key != query and key < (query if back else count)]:
            rows["punctuation"].append(sum(row[key] for key in marks))
        rows["first"].append(sum(row[key] for key in range(count) if resting[key]))
        rows["broad"].append(-sum(one * math.log(one) for one in row if one > 0) / math.log(seen))
    return {name: sum(some) / len(some) if len(some) > 1 else math.nan for name, some in rows.items()}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("all-MiniLM-L6-v2", "The old lamp, the red chair and the clock. Unbelievably, the old one."),
        ("induction", "moon cheese frog ring moon cheese frog"),
        ("lists", "reverse c a f : f a c"),
    ],
)
def test_shares_are_those_of_their_definitions(name: str, text: str) -> None:
    trace = shipped(name).trace(text)
    table = av.roles(trace)
    tokens = trace.query_tokens()
    back = trace.streams == ("decoder",)
    for (layer, head), row in table.iterrows():
        own = naive(trace.weights(layer, head).tolist(), tokens, back=back)
        assert row[SHARES].to_dict() == pytest.approx(own, abs=1e-5, nan_ok=True), (layer, head)
        jobs = {one: own[one] for one in SHARES if av.ROLES[one].job and own[one] >= av.ROLES[one].threshold}
        if jobs and own["broad"] < 0.98:
            assert row["role"] == max(jobs, key=lambda one: jobs[one])
        else:
            rest = [one for one in ("first", "broad") if own[one] >= av.ROLES[one].threshold]
            assert row["role"] == (rest[0] if rest else "mixed")


def test_the_jobs_of_the_toy_s_heads_are_told() -> None:
    table = av.roles(shipped("induction").trace("moon cheese frog ring moon cheese frog ring"))
    assert table.loc[(0, 0), "role"] == "previous"
    assert table.loc[(1, 1), "role"] == "induction"
    assert table["induction"].idxmax() == (1, 1)


def test_the_language_model_has_heads_that_go_on_with_a_pattern_and_heads_of_the_word_before(
    smollm2: AttentionModel,
) -> None:
    text = "The old lamp, the red chair and the clock. The old lamp, the red chair and the"
    table = av.roles(smollm2.trace(text))
    assert {(17, 4), (17, 5), (18, 6)} <= {place for place, role in table["role"].items() if role == "induction"}
    assert {(11, 1), (16, 0)} <= {place for place, role in table["role"].items() if role == "previous"}
    assert table["role"].value_counts().idxmax() == "first"
    assert (table["role"] == "induction").sum() < 15


def test_of_several_texts_shares_are_means_over_those_that_have_them() -> None:
    model = shipped("all-MiniLM-L6-v2")
    traces = [model.trace(text) for text in ("The cat, the dog, the cat.", "No word here comes twice")]
    together, (one, other) = av.roles(traces), map(av.roles, traces)
    for name in SHARES:
        means = pandas.concat([one[name], other[name]], axis=1).mean(axis=1)
        pandas.testing.assert_series_equal(together[name], means, check_names=False)
    assert other["induction"].isna().all() and together["induction"].equals(one["induction"])
    assert av.roles(traces[:1]).equals(one)


def test_refusals_are_by_name() -> None:
    minilm, toy = shipped("all-MiniLM-L6-v2").trace("a b"), shipped("induction").trace("moon cheese")
    with pytest.raises(TraceError, match="one or more traces"):
        av.roles([])
    with pytest.raises(TraceError, match="one model; got all-MiniLM-L6-v2 and induction"):
        av.roles([minilm, toy])
    with pytest.raises(TraceError, match=r"same heads; got \[36, 72\] heads"):
        av.roles([minilm, shipped("all-MiniLM-L6-v2").trace("a b", layers=[0, 1, 2])])
    later = toy.derived(provenance=replace(toy.provenance, sha256="0" * 64))
    with pytest.raises(TraceError, match="one model; got induction with different weights"):
        av.roles([toy, later])
    by_its_folder = toy.derived(provenance=replace(toy.provenance, model="/models/toy"))
    assert av.roles([toy, by_its_folder])["role"].equals(av.roles(toy)["role"])
    with pytest.raises(TraceError, match="no stream was named"):
        av.roles(shipped("translation").trace("the cat sees the dog"))


def test_cross_attention_has_shares_of_what_needs_no_common_text() -> None:
    table = av.roles(shipped("translation").trace("the cat sees the dog"), "cross")
    assert table[["previous", "next", "itself", "same token", "induction"]].isna().all(axis=None)
    assert table["broad"].notna().all()


def test_short_partial_and_padded_texts_have_roles_too() -> None:
    minilm = shipped("all-MiniLM-L6-v2")
    for trace in (minilm.trace("Hello"), shipped("induction").trace("moon"), av.scratch("one")):
        assert set(av.roles(trace)["role"]) <= set(av.ROLES)
    whole = av.roles(minilm.trace("The cat sat, the dog sat."))
    kept = av.roles(minilm.trace("The cat sat, the dog sat.", layers=[2, 4]))
    pandas.testing.assert_frame_equal(kept, whole.loc[[2, 4]])
    tokens = tokens_of(("cold", "river", "near", "town", "stream", "today")).padded_after(4)
    padded = av.roles(planted(tokens, {(0, 0, 4, 5): 0.9}))
    assert padded.notna().any(axis=1).all()


def test_a_sample_of_a_long_text_says_what_the_whole_does(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = tokens_of([f"w{place % 61}" for place in range(244)])
    weights = torch.full((2, 3, 244, 244), 0.01 / 244, dtype=torch.float64)
    for query, before in zip(range(1, 244), range(244), strict=False):
        weights[0, 1, query, before] = 1
        weights[1, 0, query, query] = 1
    trace: Trace = trace_of(weights, tokens, "decoder")
    whole = av.roles(trace)
    monkeypatch.setattr("attention_viz.analysis.roles.MOST_WEIGHTS", 6 * 244 * 30)
    some = av.roles(trace)
    assert not some.equals(whole) and some.equals(av.roles(trace))
    assert some["role"].tolist() == whole["role"].tolist()
    assert whole["role"].tolist() == ["broad", "previous", "broad", "itself", "broad", "broad"]


def test_thresholds_stand_as_data_and_are_shares() -> None:
    assert list(av.ROLES)[-1] == "mixed" and av.ROLES["mixed"].threshold == 0
    assert all(0 < role.threshold < 1 for name, role in av.ROLES.items() if name != "mixed")
    labels = [role.label for role in av.ROLES.values()]
    assert len(set(labels)) == len(labels)
    assert [role.job for role in av.ROLES.values()] == sorted((role.job for role in av.ROLES.values()), reverse=True)
    assert all(one != other for one, other in pairwise(av.ROLES))
