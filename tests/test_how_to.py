"""The how-tos are true from their first block to their last: their Python and their commands run, in one folder."""

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from torch import Tensor, nn
from transformers import AttentionInterface, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from attention_viz.cli import main
from attention_viz.cli.program import program

HOW_TO = Path(__file__).parents[1] / "docs" / "how-to"
_BLOCK = re.compile(r"^(<!-- not run: .+ -->\n)?```(python|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^(?:\w+=\S+ )?attention-viz (.+)$", re.MULTILINE)


@pytest.mark.parametrize("name", ["own-model", "figure", "cluster", "large", "notebook", "space"])
def test_a_how_to_runs_from_its_first_block_to_its_last(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names, ran = dict[str, object](), 0
    for left_out, language, code in _BLOCK.findall((HOW_TO / f"{name}.md").read_text("utf-8")):
        if language == "python":
            exec(compile(code, name, "exec"), names)
            ran += 1
        for words in map(shlex.split, _COMMAND.findall(code) if language == "sh" else ()):
            program.commands[words[0]].make_context(words[0], words[1:])  # refuses words that the command doesn't take
            assert left_out or main(words) == 0, words
            ran += not left_out
    assert ran


def test_every_how_to_is_run_or_has_nothing_but_links() -> None:
    others = {path.stem: path.read_text("utf-8") for path in HOW_TO.glob("*.md")}
    assert [name for name, text in others.items() if not _BLOCK.search(text)] == ["class"]
    named = "agents class cluster figure large notebook own-app own-model panels server space"
    assert sorted(others) == named.split()


class Attention(nn.Module):
    """An attention layer with what vLLM's has: its forward's arguments, flat, and the facts that the plugin reads."""

    def __init__(self, number: int, window: int | None) -> None:
        super().__init__()
        self.layer_name, self.head_size, self.sliding_window = f"model.layers.{number}.self_attn.attn", 16, window
        self.impl = SimpleNamespace(scale=0.25, logits_soft_cap=0, alibi_slopes=None, sinks=None)

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, output_shape: Any = None, output_dtype: Any = None
    ) -> Tensor:
        return torch.zeros_like(query)


def save_model(folder: Path) -> PreTrainedTokenizerFast:
    """Save a small Llama with random weights and its tokenizer."""
    torch.manual_seed(0)
    words = ["[UNK]", "the", "cat", "sat", "on", "mat"]
    inner = Tokenizer(models.WordLevel({word: number for number, word in enumerate(words)}, unk_token="[UNK]"))
    inner.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=inner, unk_token="[UNK]")
    size: dict[str, Any] = {
        "hidden_size": 64,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "num_hidden_layers": 2,
    }
    config = LlamaConfig(**size, vocab_size=6, intermediate_size=64, initializer_range=0.4, bos_token_id=0)
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return tokenizer


def serve(folder: Path, ids: Tensor, layers: Sequence[Attention]) -> None:
    """Run the prompt and then two tokens, one by one, with each layer's new rows passed to `layers` as vLLM does."""

    def attention(module: Any, query: Tensor, key: Tensor, value: Tensor, mask: Any, **_: Any) -> tuple[Tensor, None]:
        new = [part[0, :, -query.shape[-2] :].transpose(0, 1) for part in (query, key, value)]
        flat = [nn.functional.pad(part.flatten(1), (0, 0, 0, 3)) for part in new]  # padded as for a CUDA graph
        layers[module.layer_idx](flat[0], flat[1], flat[2])
        scale = layers[module.layer_idx].impl.scale
        out = nn.functional.scaled_dot_product_attention(
            query, key, value, is_causal=query.shape[-2] > 1, scale=scale, enable_gqa=True
        )
        return out.transpose(1, 2), None

    AttentionInterface.register("served", attention)
    model = LlamaForCausalLM.from_pretrained(folder, attn_implementation="served").eval()
    with torch.no_grad():
        cache = model(ids[:, :-2], use_cache=True).past_key_values
        for place in (-2, -1):
            cache = model(ids[:, place:][:, :1], past_key_values=cache, use_cache=True).past_key_values


def test_the_guide_to_servers_writes_what_a_layer_like_vllms_gets_and_reads_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tokenizer = save_model(Path("models/mine"))
    text = tokenizer("the cat sat on the mat", return_tensors="pt").input_ids
    blocks = [
        code for _, language, code in _BLOCK.findall((HOW_TO / "server.md").read_text("utf-8")) if language == "python"
    ]
    names = dict[str, Any]()
    exec(compile(blocks[0], "server", "exec"), names)

    class Layer(Attention):
        pass

    read = iter([None, None, 6, 6, 1, 1, 1, 1])  # first a trial without a text

    def call_of(_: Layer) -> SimpleNamespace | None:
        count = next(read)
        return None if count is None else SimpleNamespace(num_actual_tokens=count, query_start_loc=[0, count])

    names["write_calls"](Layer, call_of, Path("qkv"))
    layers = [Layer(number, None) for number in range(2)]
    for layer in layers:
        layer(torch.zeros(4, 64), torch.zeros(4, 32), torch.zeros(4, 32))
    serve(Path("models/mine"), torch.cat([text, torch.tensor([[2, 3]])], 1), layers)
    assert len(list(Path("qkv").iterdir())) == 6
    for code in blocks[1:]:
        exec(compile(code, "server", "exec"), names)
    assert names["trace"].attention(0).shape == (4, 8, 8), "the prompt and what was generated"
    read = iter([2])
    with pytest.raises(RuntimeError, match="a pass must read one text"):
        layers[0](torch.zeros(4, 64), None, torch.zeros(4, 32))
