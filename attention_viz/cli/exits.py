"""Exit codes: one number per kind of end, the same in all commands."""

from attention_viz.errors import AttentionVizError, ModelNotFound

SUCCESS, INTERNAL, USAGE, REFUSED, NOT_FOUND, FAILED_CHECK = range(6)
# What a shell reports of a program that ended by a signal is 128 and the signal's number: SIGINT has 2, SIGPIPE 13.
INTERRUPTED, PIPE_CLOSED = 130, 141

MEANINGS = {
    SUCCESS: "success",
    INTERNAL: "internal error, with a traceback",
    USAGE: "wrong usage",
    REFUSED: "refused: the text, file, model or option can't be used, or a package is missing",
    NOT_FOUND: "not found: no such file or model, or the model's files are broken",
    FAILED_CHECK: "failed check: not verified, or the model doesn't fit",
    INTERRUPTED: "Ctrl-C",
    PIPE_CLOSED: "the program that read the output stopped reading, as `head` does",
}


def code_of(error: AttentionVizError) -> int:
    """Return the exit code of an error of ours, by its kind or the system's error behind it."""
    behind = (error.__cause__, error.__context__)
    missing = isinstance(error, ModelNotFound) or any(isinstance(one, FileNotFoundError) for one in behind)
    return NOT_FOUND if missing else REFUSED
