"""A command's inputs: texts, trace files, and a model loaded once."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click

from attention_viz.cli.output import report
from attention_viz.errors import AttentionVizError, UnsupportedModel
from attention_viz.trace.kind import MEDIA
from attention_viz.trace.slots import has_target

if TYPE_CHECKING:
    from attention_viz.models import AttentionModel
    from attention_viz.scratch.model import Scratch
    from attention_viz.trace.kept import KeptLayers
    from attention_viz.trace.trace import Trace


def given(
    arguments: SimpleNamespace, second: str | None = None, target: str | None = None
) -> "tuple[list[Trace], AttentionModel | Scratch | None]":
    """Return a command's traces, and any model loaded."""
    texts = _texts(arguments)
    files: tuple[str, ...] = arguments.trace
    if not texts and not files:
        raise click.UsageError("give a text or --trace FILE")
    if len(texts) + len(files) > 1 and not hasattr(arguments, "texts"):
        raise click.UsageError("this command takes one text; give a text or --trace FILE, once")
    if texts and not files and arguments.model is None:
        raise click.UsageError("a text needs a model to read it; add --model MODEL")
    if files and (second is not None or target is not None):
        raise click.UsageError("a saved trace isn't run again; leave out --second and --target")
    kept = [_load(one, arguments.model) for one in files]
    # A saved trace's model reads the texts, unless another is named.
    model = model_of(str(arguments.model or kept[0].provenance.model), arguments) if texts else None
    found = [*(() if model is None else (model.trace(one, second, target=target) for one in texts)), *kept]
    report_without({one.provenance.model: one.kept for one in found})
    return found, model


def report_without(models: "Mapping[str, Mapping[str, KeptLayers]]") -> None:
    """Report a hybrid's layers without softmax attention."""
    from attention_viz.cli.answers.asking import notes_without

    for note in notes_without(models):
        report(note)


def shown(arguments: SimpleNamespace, target: str | None = None) -> "Trace | None":
    """Return the trace of an image or audio, else None."""
    files = {kind: path for kind in MEDIA if (path := getattr(arguments, kind)) is not None}
    if not files:
        return None
    others = (*_texts(arguments), *arguments.trace, *([arguments.second] if arguments.second else []))
    if others or len(files) > 1:
        options = ", ".join(f"--{kind} FILE" for kind in MEDIA)
        raise click.UsageError(f"give one input only: a text, {options} or --trace FILE")
    if arguments.model is None:
        raise click.UsageError(f"{next(iter(files)).one} needs a model to read it; add --model MODEL")
    import attention_viz as av
    from attention_viz.inputs.media.readers import CLASSES

    thing = next(CLASSES[kind](path) for kind, path in files.items())
    model = model_of(str(arguments.model), arguments)
    if not isinstance(model, av.AttentionModel):
        raise UnsupportedModel(f"{arguments.model} reads text; got {thing!r}")
    made = model.trace(thing, target=target)
    for line in made.provenance.notes:
        report(line)
    report_without({made.provenance.model: made.kept})
    return made


def trace_of(
    arguments: SimpleNamespace,
    text: str | None,
    file: str | None,
    first: "Trace",
    model: "AttentionModel | Scratch | None",
    option: str,
) -> "tuple[Trace, AttentionModel | Scratch | None]":
    """Return an option's trace, and the model if loaded; `option` is the text's: "--other", with "--other-trace"."""
    if (text is None) == (file is None):
        raise click.UsageError(f"give {option} TEXT or {option}-trace FILE")
    if file is not None:
        return _load(file, arguments.model), model
    loaded = model or model_of(arguments.model or first.provenance.model, arguments)
    return loaded.trace(whole(_no_trace(text or ""))), loaded


def model_behind(
    arguments: SimpleNamespace, traces: "Sequence[Trace]", model: "AttentionModel | Scratch | None"
) -> "tuple[AttentionModel, list[Trace]]":
    """Return traces' model; run traces from files anew."""
    names = dict.fromkeys(one.provenance.model for one in traces)
    if len(names) > 1:
        raise AttentionVizError(f"this command needs traces of one model; got {', '.join(names)}")
    loaded = pretrained(arguments.model or next(iter(names)), arguments, model)
    return loaded, [one if _has_run(one) else _again(loaded, one) for one in traces]


def _has_run(trace: "Trace") -> bool:
    from attention_viz.trace.trace_data import behind

    return behind(trace).run is not None


def _again(model: "AttentionModel", trace: "Trace") -> "Trace":
    from attention_viz.operation.numerics import REPEATED, close

    origin = trace.provenance
    if origin.text is None or origin.edits:
        what = "an edited run" if origin.edits else "a run of token ids"
        raise AttentionVizError(f"can't rerun the trace of {origin.model}, which is {what}; give a text")
    target = origin.target if has_target(trace.attention_streams) and not origin.generated else None
    messages = [{"role": role, "content": content} for role, content in origin.messages]
    made = model.trace(
        messages or origin.text,
        origin.second_text,
        target=target,
        special_tokens=origin.special_tokens,
        chat=origin.chat,
    )
    if not close(made.output.float(), trace.output.float(), REPEATED):
        raise AttentionVizError(f"{model.name} no longer reproduces the output saved in this file; give a text")
    return made


def pretrained(
    name: str, arguments: SimpleNamespace, model: "AttentionModel | Scratch | None" = None
) -> "AttentionModel":
    """Return the model, loaded if it isn't yet."""
    import attention_viz as av

    found = model or model_of(name, arguments)
    if not isinstance(found, av.AttentionModel):
        raise UnsupportedModel(f"{found.name} has random weights, which nothing trained; choose a pretrained model")
    return found


def model_of(name: str, arguments: SimpleNamespace, *, alone: bool = True) -> "AttentionModel | Scratch":
    """Return the model of a name; one that also reads images reads text `alone`."""
    import attention_viz as av

    report(f"Loading {name} …")
    return av.load(name, alone=alone, **placed(arguments))


def placed(arguments: SimpleNamespace) -> dict[str, Any]:
    """Return the options of `av.load` that say where and how the model is held."""
    if not hasattr(arguments, "model_dtype"):  # a command without these options
        return {}
    return {
        "device": arguments.device,
        "dtype": arguments.model_dtype,
        "quantization": arguments.quantization,
        "max_memory": arguments.max_memory,
    }


def _load(file: str, model: str | None) -> "Trace":
    import attention_viz as av

    found = av.Trace.load(file)
    if model is not None and model != found.provenance.model:
        raise AttentionVizError(f"{file} is a trace of {found.provenance.model}, not of {model}; leave out --model")
    return found


def _texts(arguments: SimpleNamespace) -> list[str]:
    """Return the texts; a file has one per line."""
    own: Sequence[str | None] = [arguments.text] if isinstance(arguments.text, str | None) else arguments.text
    found = [given_text(one) for one in own if one is not None]
    path = getattr(arguments, "texts", None)
    if path is None:
        return found
    try:
        lines = Path(path).read_text("utf-8").splitlines()
    except OSError as error:
        raise AttentionVizError(f"can't read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise AttentionVizError(f"{path} isn't text in UTF-8: {error.reason}") from None
    filled = [line for line in lines if line.strip()]
    if not filled:
        raise AttentionVizError(f"{path} has no text; write one per line")
    return [*found, *filled]


def given_text(argument: str) -> str:
    """Return the text, or standard input for -, without line end."""
    if argument != "-":
        return whole(_no_trace(argument))
    try:
        return whole(sys.stdin.read().removesuffix("\n").removesuffix("\r"))
    except UnicodeDecodeError as error:
        raise AttentionVizError(f"standard input isn't text in {error.encoding}: {error.reason}") from None


def _no_trace(text: str) -> str:
    """Return the text; reject the path of a trace."""
    try:
        if "\n" in text or not Path(text).is_file():
            return text
    except (OSError, ValueError):  # a text is often longer than a path may be
        return text
    # Load torch only if the text names a file.
    from attention_viz.trace.files.read import is_trace

    if text.endswith(".safetensors") or is_trace(text):
        raise AttentionVizError(f"{text} is a file, not a text; to open a trace, use --trace {text}")
    return text


def whole(text: str) -> str:
    """Return the text; reject bytes that aren't characters."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise AttentionVizError(f"the text has an invalid byte at position {error.start}; remove it") from None
    return text
