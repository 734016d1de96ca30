"""The command for models that may not fit."""

from types import SimpleNamespace

from attention_viz.cli.arguments import MODEL, TEXT_FORMAT, argument, command, count, option, placing
from attention_viz.cli.exits import FAILED_CHECK, SUCCESS
from attention_viz.cli.given import placed
from attention_viz.cli.output import one_line, show


@command(
    "Print a model's need of memory before it is loaded, whether it fits, and options that would.",
    "plan SmolLM2-135M-Instruct --quantization int8",
    argument("model", MODEL),
    option("--tokens", "N", "length of the text to be traced", type=count, default=1_000),
    *placing(),
    TEXT_FORMAT,
    note=f"The exit code is {FAILED_CHECK} if the model doesn't fit.",
)
def plan(arguments: SimpleNamespace) -> int:
    """Print a plan; return a failed check if the model doesn't fit."""
    import attention_viz as av
    from attention_viz.cli.answers.asking import plan_answer

    found = av.load_plan(arguments.model, tokens=arguments.tokens, **placed(arguments))
    if arguments.format == "json":
        show(plan_answer(found), "json")
    else:
        print("\n".join(map(one_line, str(found).splitlines())))
    return FAILED_CHECK if found.fits is False else SUCCESS
