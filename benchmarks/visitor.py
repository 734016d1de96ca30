"""One visitor of a running app without a browser: the same messages over the same kind of connection."""

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import urlencode, urlsplit

from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ClientState_pb2 import ClientState
from streamlit.proto.Common_pb2 import FileURLs, UploadedFileInfo
from streamlit.proto.Delta_pb2 import Delta
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.proto.PageLink_pb2 import PageLink
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.asyncio.client import ClientConnection, connect
from websockets.typing import Origin, Subprotocol

from benchmarks.uploading import put

__all__ = ["Answer", "Visitor"]


@dataclass(frozen=True)
class Answer:
    """The result of one action.

    Attributes:
        seconds: from the click to the last part of the page.
        errors: every error on the page.
        size: bytes that were sent for it.
    """

    seconds: float
    errors: tuple[str, ...]
    size: int


@dataclass
class Visitor:
    """A visitor with a browser tab.

    Attributes:
        parameters: of the first link, such as a sentence.
        patience: seconds after which a page that hasn't answered counts as an error.
        below: the path that the app is served at; empty for the root of its host.
        heard: gets every message as it comes.
        waiting: what the page said of what was under way, as HTML, in order.
    """

    address: str
    parameters: dict[str, str]
    patience: float = 120
    below: str = ""
    heard: Callable[[bytes], None] = lambda _: None
    waiting: list[str] = field(default_factory=list[str])
    _connection: ClientConnection | None = None
    _page: str = ""
    _links: dict[str, PageLink] = field(default_factory=dict[str, PageLink])
    _buttons: dict[str, str] = field(default_factory=dict[str, str])
    _boxes: dict[str, WidgetState] = field(default_factory=dict[str, WidgetState])
    _uploaders: dict[str, str] = field(default_factory=dict[str, str])
    _phrase: list[str] = field(default_factory=list[str])

    async def come(self) -> None:
        """Connect, as a browser does once it has the page's frame."""
        socket = (
            urlsplit(self.address)
            ._replace(scheme="ws", path=f"/{self.below}/_stcore/stream".replace("//", "/"))
            .geturl()
        )
        self._connection = await connect(
            socket,
            subprotocols=[Subprotocol("streamlit")],
            origin=Origin(self.address),
            max_size=None,
            open_timeout=self.patience,
        )

    async def leave(self) -> None:
        """Close the tab."""
        if self._connection is not None:
            await self._connection.close()

    async def open(self) -> Answer:
        """Open the first link."""
        return await self._run(ClientState(query_string=urlencode(self.parameters)))

    async def follow(self, label: str) -> Answer:
        """Follow the menu link with this label and its parameters."""
        link = self._links[label]
        self._page = link.page_script_hash
        return await self._run(ClientState(page_name=link.page, query_string=link.query_string))

    async def press(self, label: str, answering: str = "") -> Answer:
        """Click the button with this label.

        Args:
            answering: a box to type 1 into, or options to choose the first of, before; where there are such.
        """
        state = ClientState(query_string=urlencode(self.parameters))
        if answering in self._boxes:
            state.widget_states.widgets.append(self._boxes[answering])
        state.widget_states.widgets.append(WidgetState(id=self._buttons[label], trigger_value=True))
        return await self._run(state)

    async def upload(self, label: str, name: str, content: bytes) -> Answer:
        """Choose a file in the field with this label, as a browser does: request a URL, upload the file, report it.

        Returns:
            The page with it. That the page has no such field is an error of it, as is that the server takes no file.
        """
        began = time.perf_counter()
        if label not in self._uploaders:
            return Answer(0, (f"the page has no field to bring {name}",), 0)
        try:
            async with asyncio.timeout(self.patience):
                place = await self._place_for(name)
                await asyncio.to_thread(put, f"{self.address}{place.upload_url}", name, content)
        except (TimeoutError, OSError) as problem:
            return Answer(time.perf_counter() - began, (f"the upload of {name} failed: {problem!r}",), 0)
        brought = WidgetState(id=self._uploaders[label])
        info = UploadedFileInfo(name=name, size=len(content), file_id=place.file_id, file_urls=place)
        brought.file_uploader_state_value.uploaded_file_info.append(info)
        state = ClientState(query_string=urlencode(self.parameters))
        state.widget_states.widgets.append(brought)
        return await self._run(state, began)

    def was_told(self, start: str) -> bool:
        """Return whether one of the page's messages starts with this."""
        return any(words.startswith(start) for words in self._phrase)

    @property
    def pages(self) -> frozenset[str]:
        """Return the labels of the menu's pages."""
        return frozenset(self._links)

    def offers(self, label: str) -> bool:
        """Return whether the page has an enabled button with this label."""
        return label in self._buttons

    async def _place_for(self, name: str) -> FileURLs:
        """Return the URL for an upload."""
        assert self._connection is not None
        asked = BackMsg()
        asked.file_urls_request.request_id = str(uuid.uuid4())
        asked.file_urls_request.file_names.append(name)
        await self._connection.send(asked.SerializeToString())
        while True:
            content = await self._connection.recv(decode=False)
            self.heard(content)
            message = ForwardMsg.FromString(content)
            if message.WhichOneof("type") == "file_urls_response":
                return message.file_urls_response.file_urls[0]

    async def _run(self, state: ClientState, began: float | None = None) -> Answer:
        state.page_script_hash = self._page
        state.context_info.url = self.address
        state.context_info.color_scheme = "light"
        began = began or time.perf_counter()
        assert self._connection is not None
        await self._connection.send(BackMsg(rerun_script=state).SerializeToString())
        try:
            async with asyncio.timeout(self.patience):
                return await self._answer(self._connection, began)
        except TimeoutError:
            return Answer(time.perf_counter() - began, (f"no answer in {self.patience:g} seconds",), 0)

    async def _answer(self, connection: ClientConnection, began: float) -> Answer:
        """Return every message until the page's script has finished."""
        errors, size = list[str](), 0
        while True:
            content = await connection.recv(decode=False)
            size += len(content)
            self.heard(content)
            message = ForwardMsg.FromString(content)
            kind = message.WhichOneof("type")
            if kind == "new_session":
                self._page = message.new_session.page_script_hash
                self._buttons.clear()
                self._links.clear()
                self._boxes.clear()
                self._uploaders.clear()
                self._phrase.clear()
                errors.clear()
            elif kind == "delta":
                errors += self._read(message.delta)
            elif kind == "page_not_found":
                errors.append("page not found")
            elif kind == "script_finished" and message.script_finished != ForwardMsg.FINISHED_EARLY_FOR_RERUN:
                if message.script_finished != ForwardMsg.FINISHED_SUCCESSFULLY:
                    errors.append("the page's script did not finish")
                return Answer(time.perf_counter() - began, tuple(errors), size)

    def _read(self, delta: Delta) -> list[str]:
        """The errors in a part of the page; what else it has to press, to fill in and to say is remembered."""
        element = delta.new_element
        kind = element.WhichOneof("type")
        if kind == "button":
            # One that can't be pressed is as good as none.
            self._buttons |= {} if element.button.disabled else {element.button.label: element.button.id}
        if kind == "page_link":
            self._links[element.page_link.label] = element.page_link
        if kind == "text_input":
            box = element.text_input
            self._boxes[box.label] = WidgetState(id=box.id, string_value="1")
        if kind == "file_uploader":
            self._uploaders[element.file_uploader.label] = element.file_uploader.id
        if kind == "radio":
            self._boxes[element.radio.label] = WidgetState(id=element.radio.id, string_value=element.radio.options[0])
        if kind == "html" and 'role="status"' in element.html.body:
            self.waiting.append(element.html.body)
        if kind == "alert":
            self._phrase.append(element.alert.body)
        if kind == "exception":
            return [f"{element.exception.type}: {element.exception.message}"]
        if kind == "alert" and element.alert.format == Alert.ERROR:
            return [element.alert.body]
        return []
