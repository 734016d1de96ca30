"""Check a model's folder before anything of it is loaded, with a plain message for each error.

Nothing here needs torch, so that a folder can be checked without waiting for it. Messages use a passed name for the
folder, never its path: a server's visitors read them.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from attention_viz.errors import ModelNotFound, UnsupportedModel, first_line
from attention_viz.sources.declarations import read_headers, refuse_declared, refuse_gguf, refuse_without_config

if TYPE_CHECKING:
    from torch import nn

WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
# Files of processors for images, sounds, and texts with them.
PROCESSOR_FILES = ("preprocessor_config.json", "processor_config.json")
# A folder with none of these has no tokenizer.
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "tokenizer.model",
    "sentencepiece.bpe.model",
    "spiece.model",
    "vocab.json",
    "vocab.txt",
)

_PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl", ".h5", ".msgpack")
# What a model is read from, vocabularies of every kind and chat templates among it; logs and checkpoints' other files
# come and go beside it.
_READ = (".json", ".safetensors", ".jinja", ".model", ".txt", ".spm", ".tiktoken", ".codes", ".bpe", ".vocab")
# The files by which transformers knows a distributed checkpoint, which it reads instead of all others.
_PARTS_OF_SEVERAL = re.compile(r"shard-\d+-model-\d+-of-\d+\.safetensors")
# Where further chat templates lie.
_TEMPLATES = "additional_chat_templates"
# Bytes of a vocabulary: twice what the largest published ones take. Whatever is named below or ends so has a bound.
_LONGEST_VOCABULARY = 80_000_000
_VOCABULARIES = ("added_tokens.json", "merges.txt", "tekken.json", *TOKENIZER_FILES)
_ENDINGS = (".model", ".spm", ".tiktoken", ".codes", ".bpe", ".vocab")
# Bytes of other files: many times what published ones take, the largest of which list labels or added tokens.
_LONGEST_CONFIG, _LONGEST_TEMPLATE = 5_000_000, 1_000_000
_CONFIGS = (
    "config.json",
    "generation_config.json",
    "adapter_config.json",
    "special_tokens_map.json",
    "chat_template.json",
    "video_preprocessor_config.json",
    *PROCESSOR_FILES,
)
# Of these as well, but the largest published models have 15 MB of index, and they are parsed here, which takes many
# times their length.
_LONGEST_INDEX, _PARSED = 20_000_000, (INDEX, "tokenizer_config.json")
_MOST_TEMPLATES = 100
# Characters of what another library says, which may repeat what a file holds.
_LONGEST_REASON = 1_000
# How much of a file is read at a time.
_AT_ONCE = 4_000_000


@dataclass(frozen=True)
class CheckedFolder:
    """A folder with a whole model, as far as known without loading it; dtypes are in safetensors' own words."""

    path: Path
    name: str
    config: Mapping[str, Any]
    weights: tuple[Path, ...]
    tensors: Mapping[str, tuple[int, ...]]
    dtypes: Mapping[str, str]

    @property
    def shapes(self) -> Iterable[tuple[int, ...]]:
        """The shapes of all tensors, with repeats."""
        return self.tensors.values()

    @property
    def numbers(self) -> int:
        """The count of numbers in all weights."""
        return sum(prod(shape) for shape in self.shapes)

    def sha256(self, check: Callable[[], None] = lambda: None) -> str:
        """Return the weights' sha256; several files hash as `sha256sum model-*.safetensors` lists them.

        Its lines are in the order of names. An exception in `check` ends the reading.
        """
        sums = [sha256_of(path, check) for path in self.weights]
        if len(sums) == 1:
            return sums[0]
        lines = (f"{found}  {path.name}\n" for found, path in zip(sums, self.weights, strict=True))
        return hashlib.sha256("".join(lines).encode()).hexdigest()

    def reason(self, error: BaseException) -> str:
        """Return a foreign error's message, with the folder's name instead of its path."""
        return first_line(error).replace(str(self.path), self.name)[:_LONGEST_REASON]


def check_folder(path: Path, name: str) -> CheckedFolder:
    """Check that a folder holds a whole model, safetensors only, without code."""
    if not (path / "config.json").is_file():
        refuse_without_config(path, name)
    _refuse_long(path, name)
    config = _read_json(path / "config.json", name)
    if not isinstance(config.get("model_type"), str):
        raise ModelNotFound(f"config.json of {name} has no model_type; add the kind of model")
    refuse_code(config, name)
    refuse_declared(config, name)
    _refuse_other_weights(path, config, name)
    for file in ("tokenizer_config.json", *PROCESSOR_FILES):
        if (path / file).is_file():
            refuse_code(_read_json(path / file, name), name)
    weights = _weights(path, name)
    return CheckedFolder(path, name, config, weights, *read_headers(weights, name))


def parse_json(content: bytes, file: str, name: str) -> dict[str, Any]:
    """Return the JSON object in one of a model's files."""
    try:
        parsed = json.loads(content.decode())
    except (ValueError, RecursionError) as error:
        raise ModelNotFound(f"can't read {file} of {name}: {error}") from None
    if not isinstance(parsed, dict):
        raise ModelNotFound(f"can't read {file} of {name}: it isn't a JSON object")
    return cast("dict[str, Any]", parsed)


def refuse_code(config: Mapping[str, object], name: str) -> None:
    """Refuse a configuration that asks for code to be run."""
    if "auto_map" in config:
        raise UnsupportedModel(f"{name} runs its own code (auto_map); use a model without code")


def _refuse_other_weights(path: Path, config: Mapping[str, object], name: str) -> None:
    """Refuse files that would make transformers read other weights than those checked here."""
    if config.get("transformers_weights") is not None:
        raise UnsupportedModel(
            f"config.json of {name} names other weights (transformers_weights) than {WEIGHTS} or the files of {INDEX}; "
            "rename them and remove that key"
        )
    if any(_PARTS_OF_SEVERAL.match(file.name) for file in path.iterdir()):
        raise UnsupportedModel(
            f"can't load the distributed checkpoint {name} (shard-…-model-….safetensors); load it where it was made, "
            "and save it with model.save_pretrained"
        )


def refuse_without_safetensors(files: Iterable[str], name: str) -> None:
    """Raise an error that says why files without safetensors can't be loaded."""
    files = tuple(files)
    refuse_gguf(files, name)
    pickles = sorted(file for file in files if Path(file).suffix in _PICKLES)
    if pickles:
        raise UnsupportedModel(
            f"can't load the weights of {name} from {', '.join(pickles)}, a format that can run code when opened; "
            "convert them to safetensors with model.save_pretrained"
        )
    raise ModelNotFound(f"{name} has no {WEIGHTS}; save the model with model.save_pretrained")


def _refuse_long(path: Path, name: str) -> None:
    """Refuse text files longer than any model's, which would block all visitors while they are read."""
    files = [file for file in path.iterdir() if file.is_file()]
    templates = list((path / _TEMPLATES).glob("*.jinja"))
    if len(templates) > _MOST_TEMPLATES:
        raise UnsupportedModel(
            f"{_TEMPLATES} of {name} has {len(templates):,} chat templates; at most {_MOST_TEMPLATES} are allowed"
        )
    for file in (*files, *templates):
        size, most = file.stat().st_size, _longest(file)
        if most is not None and size > most:
            raise UnsupportedModel(f"{file.name} of {name} has {size:,} bytes; at most {most:,} are allowed")


def _longest(file: Path) -> int | None:
    """Return the largest size allowed for a file name; None for files not read as text, such as weights and logs."""
    if file.suffix == ".jinja":
        return _LONGEST_TEMPLATE
    if file.name in _CONFIGS:
        return _LONGEST_CONFIG
    if file.name in _PARSED:
        return _LONGEST_INDEX
    return _LONGEST_VOCABULARY if file.name in _VOCABULARIES or file.suffix in _ENDINGS else None


def _read_json(path: Path, name: str) -> dict[str, Any]:
    try:
        content = path.read_bytes()
    except OSError as error:  # its own words would reveal the path
        raise ModelNotFound(f"can't read {path.name} of {name}: {error.strerror}") from None
    return parse_json(content, path.name, name)


def _weights(path: Path, name: str) -> tuple[Path, ...]:
    """Return the weights: a single file, or the files that an index lists."""
    if (path / WEIGHTS).is_file():
        return (path / WEIGHTS,)
    if not (path / INDEX).is_file():
        refuse_without_safetensors((file.name for file in path.iterdir()), name)
    listed = _read_json(path / INDEX, name).get("weight_map")
    if not isinstance(listed, dict) or not listed:
        raise ModelNotFound(f"{INDEX} of {name} lists no weights; save the model again")
    files = sorted({str(file) for file in cast("dict[str, object]", listed).values()})
    for file in files:
        if Path(file).name != file or Path(file).suffix != ".safetensors":
            raise UnsupportedModel(
                f"{INDEX} of {name} names {file[:200]!r}; it may name only safetensors in the same folder"
            )
        if not (path / file).is_file():
            raise ModelNotFound(f"{name} lacks {file[:200]}, which its index lists; add the file")
    return tuple(path / file for file in files)


def state_of(path: Path) -> dict[str, tuple[int, ...]]:
    """Return each model file's inode, size and both change times (a copy may keep the first)."""
    found = dict[str, tuple[int, ...]]()
    for place in (path, path / _TEMPLATES):
        try:
            for file in place.iterdir():
                if file.suffix in _READ and file.is_file():
                    one = file.stat()
                    found[str(file.relative_to(path))] = one.st_ino, one.st_size, one.st_mtime_ns, one.st_ctime_ns
        except OSError:  # it isn't there, or goes meanwhile
            continue
    return found


def sha256_of(path: Path, check: Callable[[], None] = lambda: None) -> str:
    """Return a file's sha256; `check` is called every few megabytes and may raise to stop."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while part := file.read(_AT_ONCE):
            digest.update(part)
            check()
    return digest.hexdigest()


@contextlib.contextmanager
def unchanged(folder: Path, name: str) -> Generator[None]:
    """Fail if a file of the model changes while it is read."""
    before = state_of(folder)
    yield
    if state_of(folder) != before:
        raise ModelNotFound(f"files of {name} changed while they were read; open it again once they are written")


def keep_apart(model: "nn.Module") -> None:
    """Copy a model's numbers into memory of its own.

    Large files are memory-mapped: writing to one would silently change the open model, and truncating one would kill
    the whole process.
    """
    for one in (*model.parameters(), *model.buffers()):
        if one.device.type == "cpu":
            one.data = one.data.clone()
