"""A stand-in for the hub on this machine: the hub's own routes, answered from a dictionary."""

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import huggingface_hub
import pytest

Files = dict[str, bytes]
_PIECE = 16384


@dataclass
class Repository:
    """A model with its versions: files by commit, commits by branch or tag."""

    commits: dict[str, Files]
    branches: dict[str, str]
    gated: bool = False


@dataclass
class Hub:
    """What is published, how it is sent, and what was asked."""

    repositories: dict[str, Repository] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)
    address: str = ""
    bytes_a_second: float | None = None
    break_off_after: int | None = None
    damage: bool = False
    failing: bool = False

    def publish(self, name: str, files: Files | Path, branch: str = "main", *, gated: bool = False) -> str:
        """Put files under a name; gives the commit."""
        if isinstance(files, Path):
            files = {path.name: path.read_bytes() for path in files.iterdir() if path.is_file()}
        commit = hashlib.sha1(b"".join(key.encode() + files[key] for key in sorted(files))).hexdigest()
        repository = self.repositories.setdefault(name, Repository({}, {}, gated))
        repository.commits[commit] = files
        repository.branches[branch] = commit
        return commit

    def fetched(self) -> list[str]:
        """The files whose content was asked for, in order."""
        return [path.rsplit("/", 1)[1] for method, path in self.asked if method == "GET" and "/resolve/" in path]


def is_large(name: str) -> bool:
    """Whether the hub keeps a file apart, and so tells its sha256."""
    return name.endswith((".safetensors", ".bin"))


def etag(name: str, content: bytes) -> str:
    if is_large(name):
        return hashlib.sha256(content).hexdigest()
    return hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()


class _Refused(Exception):
    def __init__(self, status: int, code: str) -> None:
        self.status, self.code = status, code


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    hub: Hub

    def log_message(self, *_arguments: object) -> None:
        """Nothing: the tests look at what was asked."""

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        path = urlsplit(self.path).path
        self.hub.asked.append((self.command, path))
        try:
            if self.hub.failing:
                raise _Refused(503, "")
            if path.startswith("/api/models/"):
                self.send_model(*self.model(path.removeprefix("/api/models/")))
            elif "/resolve/" in path:
                name, _, rest = path.strip("/").partition("/resolve/")
                revision, _, file = rest.partition("/")
                self.send_file(name, unquote(revision), unquote(file))
            else:
                raise _Refused(404, "")
        except _Refused as refused:
            self.send(refused.status, b"{}", {"X-Error-Code": refused.code})

    def model(self, path: str) -> tuple[str, str]:
        name, _, revision = path.partition("/revision/")
        return name, unquote(revision) or "main"

    def commit(self, name: str, revision: str) -> tuple[Repository, str]:
        if name not in self.hub.repositories:
            raise _Refused(401, "RepoNotFound")
        repository = self.hub.repositories[name]
        commit = repository.branches.get(revision, revision)
        if commit not in repository.commits:
            raise _Refused(404, "RevisionNotFound")
        return repository, commit

    def send_model(self, name: str, revision: str) -> None:
        repository, commit = self.commit(name, revision)
        siblings: list[dict[str, Any]] = []
        for file, content in repository.commits[commit].items():
            entry: dict[str, Any] = {"rfilename": file, "size": len(content), "blobId": "0" * 40}
            if is_large(file):
                entry["lfs"] = {"size": len(content), "sha256": etag(file, content), "pointerSize": 134}
            siblings.append(entry)
        told = {"id": name, "modelId": name, "sha": commit, "private": False, "tags": [], "downloads": 0}
        self.send(200, json.dumps(told | {"siblings": siblings}).encode(), {"Content-Type": "application/json"})

    def send_file(self, name: str, revision: str, file: str) -> None:
        repository, commit = self.commit(name, revision)
        if repository.gated:
            raise _Refused(403, "GatedRepo")
        content = repository.commits[commit].get(file)
        if content is None:
            raise _Refused(404, "EntryNotFound")
        tag = etag(file, content)
        headers = {"X-Repo-Commit": commit, "ETag": f'"{tag}"', "Accept-Ranges": "bytes"}
        if is_large(file):
            headers |= {"X-Linked-Etag": f'"{tag}"', "X-Linked-Size": str(len(content))}
        if self.hub.damage and is_large(file):
            content = content[:-4] + b"\x7f\x7f\x7f\x7f"
        start = self.start()
        status = 200
        if start:
            status, headers["Content-Range"] = 206, f"bytes {start}-{len(content) - 1}/{len(content)}"
        self.send(status, content[start:], headers, file=file)

    def start(self) -> int:
        return int(self.headers.get("Range", "bytes=0-").removeprefix("bytes=").partition("-")[0])

    def send(self, status: int, body: bytes, headers: dict[str, str], file: str = "") -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "HEAD":
            return
        slow = self.hub.bytes_a_second if is_large(file) else None
        for start in range(0, len(body), _PIECE):
            if is_large(file) and self.hub.break_off_after is not None and start >= self.hub.break_off_after:
                self.close_connection = True
                return
            try:
                self.wfile.write(body[start : start + _PIECE])
            except OSError:  # whoever asked has gone
                self.close_connection = True
                return
            if slow:
                time.sleep(_PIECE / slow)


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The stand-in, answering."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"hub": hub}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def stand_in(hub: Hub, cache: Path, patch: pytest.MonkeyPatch) -> None:
    """Put the stand-in in the hub's place for this process, with an empty cache."""
    constants = huggingface_hub.constants
    patch.setattr(constants, "ENDPOINT", hub.address)
    patch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.address + "/{repo_id}/resolve/{revision}/{filename}")
    patch.setattr(constants, "HF_HUB_CACHE", str(cache))
    patch.setattr(constants, "HF_HUB_OFFLINE", False)
    patch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 4096)
