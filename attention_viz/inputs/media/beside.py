"""Prepare a text beside images with the processor of a model that reads both."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from torch import Tensor

from attention_viz.errors import (
    AttentionVizError,
    UnsupportedModel,
    UnusablePicture,
    UnusableSound,
    UnusableText,
    UnusableVideo,
    first_line,
)
from attention_viz.inputs.chat_template import render_chat
from attention_viz.inputs.chats import Content, Rendered, render
from attention_viz.inputs.media.as_read import as_read, of_tensors
from attention_viz.inputs.media.beside_video import read_video, why_no_video, with_marks
from attention_viz.inputs.media.picture import Picture
from attention_viz.inputs.media.readers import PICTURE, InputField, PictureReader, Reader
from attention_viz.inputs.media.remade import VIDEO, tensors_in
from attention_viz.inputs.media.sound import Sound
from attention_viz.inputs.media.video import Video
from attention_viz.inputs.text import check_text
from attention_viz.trace.kind import InputKind

if TYPE_CHECKING:
    from transformers.modeling_utils import PreTrainedModel

# The name of the words in a model's forward.
IDS = "input_ids"
# More images beside one text are refused before a processor cuts them up.
MOST_PICTURES = 16
# Marks around an image's placeholder, for models that need them.
_ARTICLE = {"image": "an", "video": "a", "audio": "some"}
_VISION = (("image_start_token", "image_end_token"), ("vision_start_token", "vision_end_token"))
_AROUND = {"image": _VISION, "video": _VISION, "audio": (("audio_bos_token", "audio_eos_token"),)}

Messages = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Beside:
    """A text, or a chat's messages, and the images, the video or the audio beside it."""

    text: "str | Messages"
    pictures: tuple[Picture, ...]
    chat: bool = False
    video: Video | None = None
    sound: Sound | None = None

    @classmethod
    def of_sound(cls, text: object, sound: Sound, *, chat: bool = False) -> "Beside":
        """Check a user's text beside audio."""
        check_text(text, "a text with audio")
        return cls(cast("str", text), (), chat, sound=sound)

    @classmethod
    def of(cls, text: object, given: object, *, chat: bool = False) -> "Beside":
        """Check a user's text and image, or a list of images."""
        listed = isinstance(given, list | tuple)
        several = cast("Sequence[object]", given) if listed else () if given is None else (given,)
        if isinstance(text, list | tuple):
            text, several = _of_messages(cast("Sequence[object]", text), several)
        else:
            check_text(text, "a text with an image")
        wrong = [one for one in several if not isinstance(one, Picture)]
        if wrong:
            name = "pictures=" if listed else "picture="
            raise UnusablePicture(f"{name} takes av.Picture(path); got {type(wrong[0]).__name__}")
        if len(several) > MOST_PICTURES:
            raise UnusablePicture(f"got {len(several)} images; pass at most {MOST_PICTURES} with one text")
        return cls(cast("str | Messages", text), tuple(cast("Sequence[Picture]", several)), chat)

    @classmethod
    def of_video(cls, text: object, video: object, *, chat: bool = False) -> "Beside":
        """Check a user's text and video."""
        if not isinstance(video, Video):
            raise UnusableVideo(f"video= takes av.Video(path); got {type(video).__name__}")
        if isinstance(text, list | tuple):
            text, _ = _of_messages(cast("Sequence[object]", text), (), video=True)
            places = sum(part["type"] == "video" for message in text for part in message["content"])
            if places > 1:
                raise UnusableVideo(f"the messages have places for {places} videos, but got 1; use one place")
        else:
            check_text(text, "a text with a video")
        return cls(cast("str | Messages", text), (), chat, video)

    @property
    def written(self) -> str:
        """The text; of messages, their texts, one per line."""
        if isinstance(self.text, str):
            return self.text
        return "\n".join(part["text"] for one in self.text for part in one["content"] if "text" in part)


def _of_messages(
    messages: Sequence[object], pictures: Sequence[object], *, video: bool = False
) -> tuple[Messages, Sequence[object]]:
    """Check a chat's messages; return them without their images, and these in order.

    Args:
        video: whether the messages have a video instead.
    """
    found, left, seen = list[Mapping[str, Any]](), list(pictures), list[object]()
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(cast("Any", message).get("role"), str):
            raise UnusableText('messages must be dicts, {"role": "user", "content": …}')
        check_text(cast("Any", message)["role"], "a message's role")
        parts: list[dict[str, str]] = []
        for part in _parts_of(cast("Any", message).get("content")):
            kind = part.get("type")
            if kind == "video" and video:
                parts.append({"type": "video"})
            elif kind == "image" and not video:
                if "image" not in part and not left:
                    raise UnusablePicture('a message has an image without a picture; add "image": av.Picture(path)')
                one = part["image"] if "image" in part else left.pop(0)
                if not isinstance(one, Picture):
                    raise UnusablePicture(f"a message's image must be av.Picture(path); got {type(one).__name__}")
                seen.append(one)
                parts.append({"type": "image"})
            elif kind == "text":
                check_text(part.get("text"), "a message's text")
                parts.append({"type": "text", "text": part["text"]})
            else:
                beside = "video" if video else "image"
                raise UnusableText(f'a message\'s parts have the type "text" or "{beside}"; got {kind!r}')
        found.append({"role": cast("Any", message)["role"], "content": parts})
    if left:
        raise UnusablePicture(f"the messages have places for {len(seen)} images, but got {len(seen) + len(left)}")
    if not found:
        raise UnusableText("the chat is empty: pass at least one message")
    return found, seen


def _parts_of(content: object) -> Sequence[Mapping[str, Any]]:
    """Return a message's parts; a text is one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    if not isinstance(content, list | tuple):
        raise UnusableText(f"a message's content must be a text or a list of parts; got {type(content).__name__}")
    parts = cast("Sequence[object]", content)
    wrong = [one for one in parts if not isinstance(one, Mapping)]
    if wrong:
        raise UnusableText(
            f'a message\'s parts must be dicts, {{"type": "text", "text": …}}; got {type(wrong[0]).__name__}'
        )
    return cast("Sequence[Mapping[str, Any]]", parts)


def reads_both(model: "PreTrainedModel", processor: Any) -> bool:
    """Return whether a model's forward takes text and image, and its processor makes both."""
    parts = (getattr(processor, name, None) for name in ("image_processor", "tokenizer"))
    return takes_both(model) and all(part is not None for part in parts)


def takes_both(model: "PreTrainedModel") -> bool:
    """Return whether a model's forward takes text and image."""
    return {PICTURE, IDS} <= _named(model)


def mark_of(model: "PreTrainedModel", kind: str = "image") -> int | None:
    """Return the id of the placeholder that a part of an image, video or audio replaces; None if the model has none.

    ColPali names it in the configuration of a part.
    """
    configs: list[Any] = [model.config]
    for config in configs:
        found = (getattr(config, f"{kind}_token_{ending}", None) for ending in ("id", "index"))
        if (mark := next((one for one in found if isinstance(one, int)), None)) is not None:
            return mark
        configs += [getattr(config, name, None) for name in getattr(config, "sub_configs", ())]
    return None


def marks_in(model: "PreTrainedModel", ids: Tensor) -> list[int]:
    """Return the positions that a part of an image, video or audio replaces, in a row of ids."""
    marks = {mark_of(model, kind) for kind in _AROUND} - {None}
    return [at for at, one in enumerate(ids[0].tolist()) if one in marks]


class BesideReader(Reader):
    """Reads text beside images or a video with a processor that has a tokenizer and an image processor."""

    kind = InputKind.BESIDE
    main = PICTURE
    reads_several = False
    takes_video = False

    def __init__(self, name: str, model: "PreTrainedModel", processor: Any) -> None:
        """Keep a processor."""
        if "decoder_input_ids" in _named(model):
            raise UnsupportedModel(
                f"can't assign positions of {name}, which reads a text with an image and generates another text. "
                "Use a model of one text, or pass tensors by name with inputs="
            )
        self._name, self._processor = name, processor
        self._pictures = PictureReader(name, processor.image_processor)
        self._mark, self._patch = mark_of(model), _patch_side(model)
        self.has_chat_template = self._template() is not None
        self.reads_several = self._mark is not None
        self.takes_video = VIDEO in _named(model)
        own_tower = any(path.endswith("video_tower") for path, _ in model.named_modules())
        self.why_no_video = why_no_video(name, _named(model), processor, own_tower=own_tower)

    def read(self, thing: object) -> InputField:
        """Prepare a text and its images or video."""
        if isinstance(thing, Beside) and thing.video is not None:
            return self._read_video(thing, thing.video)
        if isinstance(thing, Beside) and thing.sound is not None:
            raise UnusableSound(f"{self._name} reads a text with an image here, not audio; leave out sound=")
        if not isinstance(thing, Beside) or not thing.pictures:
            raise UnusableText(
                f"{self._name} reads a text with an image, but got {_what(thing)} alone. Use "
                "trace(text, picture=av.Picture(path)); for text alone, load it with alone=True or wrap its tokenizer"
            )
        if not thing.written.strip():
            raise UnusableText("the text with the image is empty: type at least one word")
        place: str | None = getattr(self._processor, "image_token", None) if self._mark is not None else None
        chat = self._rendered(thing)
        text, notes = self._with_places(chat.text, place, len(thing.pictures))

        def process(pictures: Sequence[Any]) -> Mapping[str, Tensor]:
            return self._tensors(text, pictures)

        with_names = [one.name for one in thing.pictures]
        try:
            tensors = process([one.pixels for one in thing.pictures])
        except AttentionVizError:
            raise
        except Exception as error:
            sizes = ", ".join(f"{one.name} ({one.size})" for one in thing.pictures)
            raise UnusablePicture(
                f"{self._name}'s processor can't read this text with {sizes}: {first_line(error)}"
            ) from error
        pixels = [one.pixels for one in thing.pictures]
        seen, remade, cut = as_read(tensors, pixels, with_names, self._patch, process, self._pictures)
        named = "; ".join(f"{one.name}, {one.size} pixels" for one in thing.pictures)
        own = [note for one in thing.pictures for note in one.notes]
        written = chat if text == chat.text and (thing.chat or not isinstance(thing.text, str)) else None
        return InputField(tensors, seen, {InputKind.PICTURE: named}, (*own, *cut, *notes), remade=remade, chat=written)

    def _read_video(self, thing: Beside, video: Video) -> InputField:
        """Prepare a text and its video."""
        if not thing.written.strip():
            raise UnusableText("the text with the video is empty: type at least one word")
        text, notes = self._with_places(self._rendered(thing).text, self._processor.video_token, 1, "video")
        text, marked = with_marks(self._processor, text)
        given = read_video(self._name, self._processor, text, video, self._patch)
        self._check(given.tensors, VIDEO)
        return replace(given, notes=(*given.notes, *notes, *marked))

    def of_tensors(self, tensors: Mapping[str, Tensor]) -> InputField:
        """Return the input of a processor's own tensors."""
        if VIDEO in tensors and PICTURE not in tensors:
            self._check(tensors, VIDEO)
            return InputField(tensors)
        if PICTURE not in tensors:
            raise UnusablePicture(
                f"{self._name} reads a text with an image; pass {PICTURE} with the ids, as its processor makes them"
            )
        self._check(tensors)

        def process(pictures: Sequence[Any]) -> Mapping[str, Tensor]:
            made = self._processor.image_processor(images=_opened(pictures), return_tensors="pt")
            return tensors_in(made)

        seen, remade = of_tensors(tensors, self._patch, process, self._pictures)
        return InputField(tensors, seen, remade=remade)

    def example(self) -> InputField:
        """Return an image of random colours beside a short text."""
        chance = np.random.default_rng(0)
        picture = Picture(chance.integers(0, 256, (96, 128, 3), dtype=np.uint8))
        return self.read(Beside("a picture of this", (picture,)))

    def _rendered(self, thing: Beside) -> Rendered:
        """Return a text as it is, or messages as the chat template writes them."""
        if isinstance(thing.text, str) and not thing.chat:
            return Rendered(thing.text)
        template = self._template()
        if template is None:
            raise UnusableText(f"{self._name}'s processor has no chat template; pass a text instead of messages")
        messages = thing.text
        if isinstance(messages, str):
            other = "video" if thing.sound is None else "audio"
            images = [{"type": "image"}] * len(thing.pictures) or [{"type": other}]
            messages = [{"role": "user", "content": [*images, {"type": "text", "text": messages}]}]
        tokens: Mapping[str, object] = getattr(self._processor.tokenizer, "special_tokens_map", None) or {}

        def filled(messages: list[dict[str, Any]], answers: bool) -> str:
            return render_chat(self._name, template, messages, tokens, answers=answers)

        pairs: list[tuple[str, Content]] = [(str(one["role"]), cast("Content", one["content"])) for one in messages]
        return render(pairs, filled, answers=True)

    def _template(self) -> str | None:
        owners = (self._processor, self._processor.tokenizer)
        found = next((one for owner in owners if (one := getattr(owner, "chat_template", None))), None)
        if isinstance(found, dict):
            found = cast("dict[str, str]", found).get("default")
        return found if isinstance(found, str) else None

    def _with_places(
        self, text: str, place: str | None, pictures: int, kind: str = "image"
    ) -> tuple[str, tuple[str, ...]]:
        """Return the text with a placeholder per image or video, and notes on the change."""
        if place is None and pictures > 1:
            raise UnusablePicture(f"{self._name} reads one image; got {pictures}")
        if place is None or (count := text.count(place)) == pictures:
            return text, ()
        if count:
            wanted = f"1 {kind}" if pictures == 1 else f"{pictures} {kind}s"
            raise UnusableText(
                f"the text has {count} places for {_ARTICLE[kind]} {kind} ({place}), but got {wanted}; use one place "
                f"per {kind}"
            )
        around = (
            (getattr(self._processor, start, ""), getattr(self._processor, end, "")) for start, end in _AROUND[kind]
        )
        start, end = next((pair for pair in around if all(pair)), ("", ""))
        # Some models take placeholders side by side for one image.
        put = "\n".join([f"{start}{place}{end}"] * pictures)
        what = f"the {kind}, so" if pictures == 1 else f"the {kind}s, so"
        return f"{put}{text}", (f"The text has no place for {what} {put} was put before it.",)

    def _tensors(self, text: str, pictures: Sequence[Any]) -> dict[str, Tensor]:
        opened = _opened(pictures)
        made = self._processor(text=text, images=opened[0] if len(opened) == 1 else opened, return_tensors="pt")
        tensors = tensors_in(made)
        self._check(tensors)
        return tensors

    def _check(self, tensors: Mapping[str, Tensor], main: str = PICTURE) -> None:
        shapes: dict[str, tuple[int, ...]]
        shapes = {name: tuple(tensors[name].shape) if name in tensors else () for name in (IDS, main)}
        if len(shapes[IDS]) != 2 or shapes[IDS][0] != 1 or not shapes[main]:
            raise UnsupportedModel(
                f"{self._name}'s processor makes {IDS} {shapes[IDS]} and {main} {shapes[main]}; use one that "
                "makes a row of ids, (1, tokens), and pixels"
            )


def _opened(pictures: Sequence[Any]) -> list[Any]:
    from PIL import Image

    return [Image.fromarray(one) for one in pictures]


def _patch_side(model: "PreTrainedModel") -> int:
    """Return the side of a patch in pixels, which decides how finely places are measured."""
    config: Any = getattr(model.config, "vision_config", None) or model.config
    found = getattr(config, "patch_size", None)
    found = next(iter(cast("Sequence[object]", found)), None) if isinstance(found, list | tuple) else found
    return found if isinstance(found, int) and found > 0 else 14


def _named(model: "PreTrainedModel") -> frozenset[str]:
    return frozenset(inspect.signature(model.forward).parameters)


def _what(thing: object) -> str:
    if isinstance(thing, Beside):
        thing = thing.text
    return (
        "a text"
        if isinstance(thing, str | list | tuple)
        else "an image"
        if isinstance(thing, Picture)
        else type(thing).__name__
    )
