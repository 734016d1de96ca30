"""A tiny file in the format GGUF, written here number by number: a Llama-type decoder with a few words."""

import struct
from pathlib import Path
from typing import Any

import numpy as np

WIDTH, LAYERS, HEADS, KEY_HEADS, INNER = 32, 2, 4, 2, 64
WORDS = ["<|end|>", "<|start|>", "a", "b", "c", "Ġ", "1", "2", "ab", "Ġc"]
F32, Q4_1, Q8_0 = 0, 3, 8

METADATA: dict[str, Any] = {
    "general.architecture": "llama",
    "llama.block_count": LAYERS,
    "llama.context_length": 64,
    "llama.embedding_length": WIDTH,
    "llama.feed_forward_length": INNER,
    "llama.attention.head_count": HEADS,
    "llama.attention.head_count_kv": KEY_HEADS,
    "llama.rope.freq_base": 10000.0,
    "llama.attention.layer_norm_rms_epsilon": float(np.float32(1e-5)),
    "llama.vocab_size": len(WORDS),
    "tokenizer.ggml.add_bos_token": False,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.pre": "smollm",
    "tokenizer.ggml.tokens": WORDS,
    "tokenizer.ggml.token_type": [3, 3, *[1] * (len(WORDS) - 2)],
    "tokenizer.ggml.merges": ["a b", "Ġ c"],
    "tokenizer.ggml.bos_token_id": 1,
    "tokenizer.ggml.eos_token_id": 0,
    "tokenizer.ggml.unknown_token_id": 0,
    "tokenizer.ggml.padding_token_id": 0,
    "tokenizer.chat_template": "{% for message in messages %}<|start|>{{ message['content'] }}{% endfor %}",
}


def shapes() -> dict[str, tuple[int, ...]]:
    """Of each tensor its shape, rows first."""
    keys = WIDTH * KEY_HEADS // HEADS
    layer = {
        "attn_norm": (WIDTH,),
        "attn_q": (WIDTH, WIDTH),
        "attn_k": (keys, WIDTH),
        "attn_v": (keys, WIDTH),
        "attn_output": (WIDTH, WIDTH),
        "ffn_norm": (WIDTH,),
        "ffn_gate": (INNER, WIDTH),
        "ffn_up": (INNER, WIDTH),
        "ffn_down": (WIDTH, INNER),
    }
    inside = {f"blk.{at}.{name}.weight": shape for at in range(LAYERS) for name, shape in layer.items()}
    return {"token_embd.weight": (len(WORDS), WIDTH), "output_norm.weight": (WIDTH,), **inside}


def write_gguf(path: Path, **changed: Any) -> dict[str, "np.ndarray[Any, Any]"]:
    """Write the file, and tell what numbers its tensors stand for.

    Args:
        path: of the new file.
        changed: metadata to put in place of the usual, with _ for a dot.
    """
    told = METADATA | {name.replace("__", "."): value for name, value in changed.items()}
    chance = np.random.default_rng(0)
    places, blocks, numbers = b"", b"", {}
    for name, shape in shapes().items():
        kind = F32 if len(shape) == 1 else Q8_0 if name == "token_embd.weight" else Q4_1
        packed, numbers[name] = packed_tensor(shape, kind, chance)
        places += string(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        places += struct.pack("<IQ", kind, len(blocks))
        blocks += packed + b"\0" * (-len(packed) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(numbers), len(told))
    head += b"".join(string(name) + value(one) for name, one in told.items()) + places
    path.write_bytes(head + b"\0" * (-len(head) % 32) + blocks)
    return numbers


def packed_tensor(
    shape: tuple[int, ...], kind: int, chance: np.random.Generator
) -> tuple[bytes, "np.ndarray[Any, Any]"]:
    """A tensor with random numbers: its bytes, and the numbers as the format's description says they are read."""
    count = int(np.prod(shape))
    if kind == F32:
        numbers = (1 + chance.random(count)).astype(np.float32)
        return numbers.tobytes(), numbers.reshape(shape)
    packed, numbers = b"", []
    for _ in range(count // 32):
        scale, least = np.float16(chance.random() / 8), np.float16(chance.random() - 1)
        if kind == Q8_0:
            steps = [int(step) for step in chance.integers(-127, 128, 32)]
            packed += scale.tobytes() + struct.pack("32b", *steps)
            numbers += [np.float32(scale) * np.float32(step) for step in steps]
        else:
            steps = [int(step) for step in chance.integers(0, 16, 32)]
            packed += scale.tobytes() + least.tobytes()
            packed += bytes(steps[at] | steps[at + 16] << 4 for at in range(16))
            numbers += [np.float32(scale) * np.float32(step) + np.float32(least) for step in steps]
    return packed, np.array(numbers, np.float32).reshape(shape)


def string(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def value(one: Any) -> bytes:
    """A value of the metadata, its type before it."""
    kind, packed = bare(one)
    return struct.pack("<I", kind) + packed


def bare(one: Any) -> tuple[int, bytes]:
    match one:
        case bool():
            return 7, struct.pack("?", one)
        case int():
            return 4, struct.pack("<I", one)
        case float():
            return 6, struct.pack("<f", one)
        case str():
            return 8, string(one)
        case _:
            kinds = [bare(part) for part in one]
            return 9, struct.pack("<IQ", kinds[0][0], len(one)) + b"".join(packed for _, packed in kinds)
