"""Find a hub model's files and sizes before any download: safetensors only, no code."""

import contextlib
import re
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import huggingface_hub
from huggingface_hub import errors
from huggingface_hub.utils import build_hf_headers, hf_raise_for_status, validate_repo_id

from attention_viz.errors import AttentionVizError, ModelNotFound, UnsupportedModel
from attention_viz.sources.declarations import ADAPTER, refuse_declared
from attention_viz.sources.folders import (
    INDEX,
    PROCESSOR_FILES,
    TOKENIZER_FILES,
    WEIGHTS,
    parse_json,
    refuse_code,
    refuse_without_safetensors,
)

__all__ = ["Plan", "RemoteFile", "Unreachable", "check_id", "in_plain_words", "plan"]

MAIN = "main"

# Files to fetch besides the weights: nothing that could be executed.
_SMALL = frozenset(
    (
        *TOKENIZER_FILES,
        *PROCESSOR_FILES,
        "added_tokens.json",
        "chat_template.jinja",
        "config.json",
        "generation_config.json",
        "merges.txt",
        "special_tokens_map.json",
        INDEX,
    )
)
_SHARD = re.compile(r"model-\d+-of-\d+\.safetensors")
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,99}", re.ASCII)
_LONGEST_CONFIG = 5_000_000
_SECONDS = 10


@dataclass(frozen=True)
class RemoteFile:
    """One top-level file of a model on the hub.

    Attributes:
        sha256: None if the hub doesn't give it; it does for weights.
        here: whether it is on this machine already.
    """

    name: str
    size: int
    sha256: str | None
    here: bool


@dataclass(frozen=True)
class Plan:
    """The files that a hub model needs: read it before you download.

    Attributes:
        name: hub id, "owner/name" or "name".
        revision: the requested branch, tag or commit.
        commit: its current commit.
        files: the needed files.
        offline: why the hub wasn't asked; empty if it was.
    """

    name: str
    revision: str
    commit: str
    files: tuple[RemoteFile, ...]
    offline: str = ""

    @property
    def bytes(self) -> int:
        """Size of all files together, in bytes."""
        return sum(file.size for file in self.files)

    @property
    def missing(self) -> int:
        """Bytes left to download."""
        return sum(file.size for file in self.files if not file.here)

    @property
    def complete(self) -> bool:
        """Whether nothing is left to download."""
        return all(file.here for file in self.files)


class Unreachable(Exception):
    """The hub didn't answer, or reported a fault of its own."""


def check_id(name: str, revision: str = MAIN) -> None:
    """Refuse an impossible id or revision before it becomes part of a URL or path."""
    try:
        validate_repo_id(name)
    except errors.HFValidationError:
        raise ModelNotFound(
            f"{name[:60]!r} isn't a hub id; use a name or owner/name of letters, digits, -, _ and ."
        ) from None
    if not _REVISION.fullmatch(revision) or ".." in revision or "//" in revision or revision.endswith("/"):
        raise ModelNotFound(
            f"{revision[:60]!r} isn't a revision of {name}; use a branch, a tag or a commit, such as {MAIN}"
        )


def plan(name: str, revision: str | None = None) -> Plan:
    """List a hub model's files; if the hub can't be reached, use this machine's cache.

    Nothing is written. config.json is read, because it says whether the model needs code.

    Args:
        revision: a branch, tag or commit; None for the main branch.
    """
    revision = revision or MAIN
    check_id(name, revision)
    reason = "the hub is switched off here (HF_HUB_OFFLINE)"
    if not huggingface_hub.is_offline_mode():
        try:
            return _ask(name, revision)
        except Unreachable as error:
            reason = f"the hub can't be reached ({error})"
    return _from_cache(name, revision, reason)


@contextlib.contextmanager
def in_plain_words(name: str, revision: str) -> Generator[None]:
    """Raise the hub's errors in plain words."""
    try:
        yield
    except AttentionVizError:
        raise
    except errors.RevisionNotFoundError:
        raise ModelNotFound(f"{name} has no revision {revision!r} on the hub; choose another") from None
    except errors.GatedRepoError:
        raise ModelNotFound(
            f"{name} is gated; request access on its hub page, then log in on this machine with hf auth login"
        ) from None
    except errors.RepositoryNotFoundError:
        raise ModelNotFound(f"the hub has no model {name}, or it is private; check the name") from None
    except errors.EntryNotFoundError:
        raise ModelNotFound(f"the hub lacks a file that {name} lists; choose another revision") from None
    except errors.HfHubHTTPError as error:
        raise Unreachable(f"it answered {error.response.status_code}") from None
    except Exception as error:
        raise Unreachable(type(error).__name__) from error


def _ask(name: str, revision: str) -> Plan:
    with in_plain_words(name, revision):
        listing = huggingface_hub.HfApi().model_info(name, revision=revision, files_metadata=True, timeout=_SECONDS)
        commit = listing.sha or revision
        listed = {file.rfilename: file for file in listing.siblings or ()}
        wanted = _choose(name, listed)
        for config in ("config.json", "tokenizer_config.json", *PROCESSOR_FILES):
            if config in wanted:
                found = _read(name, commit, config)
                refuse_code(found, name)
                refuse_declared(found, name)
    files: list[RemoteFile] = []
    for file in wanted:
        size, lfs = listed[file].size or 0, listed[file].lfs
        found = huggingface_hub.try_to_load_from_cache(name, file, revision=commit)
        here = isinstance(found, str) and (not size or Path(found).stat().st_size == size)
        files.append(RemoteFile(file, size, lfs.sha256 if lfs else None, here))
    return Plan(name, revision, commit, tuple(files))


def _choose(name: str, listed: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the model's files, without folders and other frameworks' files."""
    weights = {WEIGHTS} & listed.keys()
    if not weights and INDEX in listed:
        weights = {file for file in listed if _SHARD.fullmatch(file)}
    if not weights and ADAPTER in listed:
        raise UnsupportedModel(
            f"{name} on the hub is a PEFT adapter, not a whole model; download it and load its folder with av.load, "
            "or load it with peft and use av.wrap"
        )
    if not weights:
        refuse_without_safetensors((file for file in listed if "/" not in file), f"{name} on the hub")
    if "config.json" not in listed:
        raise ModelNotFound(f"{name} on the hub has no config.json, so its kind is unknown; choose another model")
    return tuple(sorted(weights | (_SMALL & listed.keys())))


def _read(name: str, commit: str, file: str) -> dict[str, Any]:
    """Return a small JSON file, without keeping it."""
    address = huggingface_hub.hf_hub_url(name, file, revision=commit)
    session: Any = huggingface_hub.get_session()
    with session.stream("GET", address, headers=build_hf_headers(), timeout=_SECONDS, follow_redirects=True) as answer:
        hf_raise_for_status(answer)
        content = b""
        for part in answer.iter_bytes():
            content += part
            if len(content) > _LONGEST_CONFIG:
                raise ModelNotFound(
                    f"{file} of {name} is longer than {_LONGEST_CONFIG:,} bytes, the most for a configuration"
                )
    return parse_json(content, file, name)


def _from_cache(name: str, revision: str, reason: str) -> Plan:
    found = huggingface_hub.try_to_load_from_cache(name, "config.json", revision=revision)
    if not isinstance(found, str):
        raise ModelNotFound(f"{reason}, and {name} at {revision} isn't in the hub's cache on this machine")
    folder = Path(found).parent
    files = (
        RemoteFile(file.name, file.stat().st_size, None, True) for file in sorted(folder.iterdir()) if file.is_file()
    )
    return Plan(name, revision, folder.name, tuple(files), reason)
