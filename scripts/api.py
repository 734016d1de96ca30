"""Make `docs/api.md`: every public name with its signature and docstring from the code.

`.venv/bin/python -m scripts.registries` writes it; a test fails if it would change anything.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import is_dataclass
from typing import Any

import attention_viz as av

__all__ = ["QUESTIONS", "names", "page"]

# Questions, and the call that answers each.
QUESTIONS = {
    "Which models are there, and on this machine?": "av.catalogue()",
    "How do I get a model?": "av.load(name)",
    "Does it fit into my memory?": "av.load_plan(name, dtype=…, quantization=…)",
    "How do I wrap a Transformers model in memory?": "av.wrap(hf_model, tokenizer)",
    "How do I record any other torch module?": "with av.record() as run: module(x)",
    "How do I use my own queries, keys, values or weights?": "av.Trace.from_qkv(…), av.Trace.from_weights(…)",
    "And what Transformers or TransformerLens returned?": "av.Trace.from_outputs(…), av.Trace.from_cache(…)",
    "How do I see attention at work without a model?": "av.scratch(text)",
    "What did attention compute on a text?": "model.trace(text)",
    "And on an image or audio?": "model.trace(av.Picture(path)), model.trace(av.Sound(path))",
    "And on a text beside an image?": "model.trace(text, picture=av.Picture(path))",
    "And on a text beside a video?": "model.trace(text, video=av.Video(path))",
    "What are the weights of one head?": "trace.weights(layer, head), trace.table(layer, head)",
    "How do I use a table in polars or Parquet?": "av.to_arrow(table), trace.to_parquet(path), av.to_parquet(…)",
    "Does the trace match the model's own run?": "trace.fidelity, model.verify(text)",
    "At which position is a word?": "trace.query_tokens().index(word)",
    "What should I look at first?": "av.findings(trace)",
    "What does each head mostly do?": "av.roles(trace)",
    "How do heads differ in numbers?": "av.head_table(trace)",
    "Which keys did an indexer leave out, and how narrowly?": "av.picked_table(trace)",
    "How do they differ over a whole corpus?": "av.scan(model, texts, out), av.Scan.load(out)",
    "Which are the induction heads?": "av.head_table(trace, repeated_random=True)",
    "Which heads link one word to another?": "av.find_heads(trace, query, key)",
    "Which heads match my own pattern?": "av.similarity(trace, pattern)",
    "How do two runs differ in a head?": "av.compare(a, b, layer, head)",
    "Which heads differ most between two runs?": "av.head_divergences(a, b)",
    "How much does each word contribute through all layers?": "av.rollout(trace), av.flow(trace)",
    "How large is each weighted value vector?": "av.norm_weighted(model, trace, layer)",
    "Is the first token an attention sink?": "av.attention_sinks(model, trace)",
    "How much of a chat's answer goes to its question or thinking?": "av.segment_table(trace)",
    "Which attention weights raise the model's output?": "av.gradient(model, text)",
    "What contributes to a score or a logit?": "av.decompose(model, trace, of)",
    "Which heads matter for the next word?": "av.effects(model, text, av.Logit(word))",
    "When was each word of the audio spoken?": "av.word_times(model, trace)",
    "Which heads follow the speech?": "av.aligning_heads(trace)",
    "How likely is a word here?": "model.probability(trace, word)",
    "How does a model continue a text?": "model.generate(text, tokens, sample=…), model.extend(trace)",
    "How do I trace tokens that something else generated?": "model.follow(ids, prompt=n)",
    "How likely was each generated token?": "model.chances(trace)",
    "What if I patch a head from another text?": "av.patch(model, text, other, of)",
    "What do a head's parameters alone show?": "av.circuits(model), av.compositions(model)",
    "Which heads copy?": "av.copying(model, texts)",
    "What would the model predict after each layer?": "av.logit_lens(model, trace)",
    "Which words does a head promote?": "av.writes(model, trace, layer, head)",
    "What if a head is ablated, or can't attend there?": "model.trace(text, edits=[av.Ablate(…), av.Allow(…)])",
    "How do I merge subword tokens into words?": "av.merge_words(trace)",
    "How do I compute attention by itself?": "av.attend(query, key, value)",
    "How do I compare torch's module with ours?": "av.from_torch(module)",
    "How do I draw it?": "av.explore(trace), av.views.heatmap(trace, layer, head)",
    "How do I show it in my own Streamlit app?": "av.streamlit.explorer(trace, key=…)",
    "How do I see all heads, or one in steps, in a notebook?": "av.atlas(trace), av.steps(trace, layer, head)",
    "How do I paint a mask in a notebook?": "av.mask(model, trace, layer, head)",
    "How do I see a number's parts in a notebook?": "av.why(model, trace, of)",
    "How do I keep less of a long text?": "model.trace(text, layers=…, heads=…, queries=…)",
    "How do I save it, in less space?": "trace.save(path, layers=…, what=…, dtype=…), av.Trace.load(path)",
    "How do I save a figure for print?": "av.views.save(figure, path, trace, width=…)",
}

_HEAD = """# Reference

Every public name, with its signature and docstring. `.venv/bin/python -m scripts.registries` writes this page from the
code. For examples, see [In Python](python.md).
"""
_LONGEST = 110
_SECTION = re.compile(r"^(Args|Attributes|Returns|Raises|Warns|Yields):$", re.MULTILINE)
_PUT_OFF = re.compile(
    r"(?:(?<=^)|(?<=: )|(?<=-> )|(?<=\[)|(?<=\| ))'((?:[A-Z]|pandas\.)[\w.]*(?:\[[\w., |]*\])?(?: \| \w+)*)'"
)
_ENTRY = re.compile(r"^(\w[\w, *]*): (.*)", re.DOTALL)


def names() -> dict[str, Any]:
    """Return every public name, in the order of the page: top level, then masks, views and streamlit."""
    found = {f"av.{name}": getattr(av, name) for name in dir(av) if name != "__version__"}
    found = {name: value for name, value in found.items() if not inspect.ismodule(value)}
    for room in (av.masks, av.views, av.streamlit):
        short = room.__name__.rpartition(".")[2]
        found |= {f"av.{short}.{name}": getattr(room, name) for name in room.__all__}
    return found


def page() -> str:
    """Return the whole page."""
    found = names()
    parts = [_HEAD, "## Which call answers which question", _questions(), "## Errors", _errors()]
    for title, belongs in _KINDS.items():
        parts.append(f"## {title}")
        parts += [_entry(name, value) for name, value in found.items() if belongs(name, value)]
    tables = [
        f"- `{name}`: {', '.join(f'`{one}`' for one in value)}"
        for name, value in found.items()
        if isinstance(value, dict)
    ]
    return "\n\n".join([*parts, "## Registries", "\n".join(tables)]) + "\n"


def _is_call(name: str, value: object) -> bool:
    return inspect.isfunction(value) and name.count(".") == 1


def _is_mask(name: str, value: object) -> bool:
    return inspect.isfunction(value) and name.startswith("av.masks.")


def _is_type(name: str, value: object) -> bool:
    return inspect.isclass(value) and not issubclass(value, BaseException)


def _is_picture(name: str, value: object) -> bool:
    return inspect.isfunction(value) and name.startswith("av.views.")


def _is_component(name: str, value: object) -> bool:
    return inspect.isfunction(value) and name.startswith("av.streamlit.")


_KINDS: dict[str, Callable[[str, object], bool]] = {
    "Functions": _is_call,
    "Masks": _is_mask,
    "Types": _is_type,
    "Pictures": _is_picture,
    "In a Streamlit app": _is_component,
}


def _questions() -> str:
    rows = [f"| {question} | `{call}` |" for question, call in QUESTIONS.items()]
    return "\n".join(["| question | call |", "|---|---|", *rows])


def _errors() -> str:
    rows = [
        f"| `av.{name}` | {', '.join(f'`{base.__name__}`' for base in kind.__bases__)} | {_line(kind)} |"
        for name, kind in ((name, getattr(av, name)) for name in av.errors.__all__)
    ]
    return "\n".join(["| error | is a | raised for |", "|---|---|---|", *rows])


def _line(value: object) -> str:
    return " ".join((inspect.getdoc(value) or "").partition("\n\n")[0].split()).replace("|", "\\|")


def _entry(name: str, value: Any) -> str:
    parts = [f"### {name}", f"```python\n{_signature(name, value)}\n```", _phrase(value)]
    if inspect.isclass(value):
        parts += [_member(one, part) for one, part in _members(value)]
    return "\n\n".join(part for part in parts if part)


def _members(kind: type) -> Iterator[tuple[str, Any]]:
    """Yield the public methods and properties of our class, including those inherited from ours."""
    for name in sorted(one for one in dir(kind) if not one.startswith("_")):
        found = inspect.getattr_static(kind, name)
        inner = getattr(found, "fget", None) or getattr(found, "__func__", None) or getattr(found, "_function", None)
        function = inner or found
        if inspect.isfunction(function) and function.__module__.startswith("attention_viz") and function.__doc__:
            yield name, found


def _member(name: str, found: Any) -> str:
    inner = getattr(found, "fget", None) or getattr(found, "_function", None)
    function = inner or getattr(found, "__func__", found)
    if inner is not None:
        return f"**`.{name}`**{_returned(function)}: {_line(function)}"
    return f"#### .{name}\n\n```python\n{_signature(name, function)}\n```\n\n{_phrase(function)}"


def _returned(function: Any) -> str:
    returns = _tree(function).returns
    return "" if returns is None else f" → `{_plain(ast.unparse(returns))}`"


def _tree(value: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(value)))).body[0]


def _signature(name: str, value: Any) -> str:
    """Return its signature as written."""
    if inspect.isclass(value):
        arguments = _constructor(value)
        return f"class {name}({arguments})" if len(arguments) < 90 else f"class {name}(\n    {arguments}\n)"
    tree = _tree(value)
    for bound in ("self", "cls"):
        tree.args.args = [one for one in tree.args.args if one.arg != bound]
    returns = "" if tree.returns is None else f" -> {_plain(ast.unparse(tree.returns))}"
    return _laid(name, tree.args, returns)


def _constructor(kind: type) -> str:
    """Return a class's arguments: those of its own `__init__`, else its public fields."""
    if ("__init__" in vars(kind) or is_dataclass(kind)) and not _made_of_fields(kind):
        tree = _tree(inspect.getattr_static(kind, "__init__"))
        tree.args.args = tree.args.args[1:]
        return _plain(ast.unparse(tree.args))
    body = _tree(kind).body
    made = [one for one in body if isinstance(one, ast.AnnAssign) and not ast.unparse(one.target).startswith("_")]
    shown = [
        f"{ast.unparse(one.target)}: {_plain(ast.unparse(one.annotation))}"
        + (f" = {ast.unparse(one.value)}" if one.value is not None and not isinstance(one.value, ast.Call) else "")
        for one in made
        if "ClassVar" not in ast.unparse(one.annotation)
    ]
    return ", ".join(shown)


def _plain(code: str) -> str:
    """Remove the quotes of postponed annotations; keep those of shapes."""
    return re.sub(
        r"(?:(?<=^)|(?<=: )|(?<=-> )|(?<=\[)|(?<=\| ))'((?:[A-Z]|pandas\.)[\w.]*(?:\[[\w., |]*\])?(?: \| \w+)*)'",
        r"\1",
        code,
    )


def _laid(name: str, arguments: ast.arguments, returns: str) -> str:
    """Return a call in one line or, if that is long, one argument per line."""
    whole = f"{name}({_plain(ast.unparse(arguments))}){returns}"
    if len(whole) <= _LONGEST:
        return whole
    parts: list[str] = []
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults = [None] * (len(plain) - len(arguments.defaults)) + list(arguments.defaults)
    for one, default in zip(plain, defaults, strict=True):
        parts.append(_argument(one, default))
    if arguments.vararg is not None:
        parts.append(f"*{_argument(arguments.vararg, None)}")
    elif arguments.kwonlyargs:
        parts.append("*")
    parts += [_argument(*one) for one in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    if arguments.kwarg is not None:
        parts.append(f"**{_argument(arguments.kwarg, None)}")
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + f"){returns}"


def _argument(one: ast.arg, default: ast.expr | None) -> str:
    kind = "" if one.annotation is None else f": {_plain(ast.unparse(one.annotation))}"
    return f"{one.arg}{kind}" + ("" if default is None else f" = {ast.unparse(default)}")


def _phrase(value: object) -> str:
    """Return a docstring as Markdown, with its sections as lists."""
    text = inspect.getdoc(value) or ""
    pieces = _SECTION.split(text)
    parts = [pieces[0].strip()]
    for title, body in zip(pieces[1::2], pieces[2::2], strict=True):
        if title in ("Returns", "Yields"):
            parts.append(f"*{title}* {' '.join(body.split())}")
            continue
        entries = re.split(r"\n(?=    \S)", "\n" + body.strip("\n"))
        lines = [" ".join(entry.split()) for entry in entries if entry.strip()]
        listed = [_ENTRY.sub(r"- `\1`: \2", line) for line in lines]
        parts.append(f"*{title}*\n\n" + "\n".join(line if line.startswith("- ") else f"- {line}" for line in listed))
    return "\n\n".join(parts)


def _made_of_fields(kind: type) -> bool:
    """Return whether a dataclass is built from its fields, not by its own code."""
    settings = getattr(kind, "__dataclass_params__", None)
    return settings is not None and settings.init
