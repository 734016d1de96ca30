"""Texts beside images on the server: thirty visitors at once, and the time of the first one."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch

import attention_viz as av
from attention_viz.explorer import pack
from attention_viz.inputs.media.beside import Beside
from attention_viz.inputs.media.shipped import SAMPLES
from attention_viz.serving.run import Request
from attention_viz.serving.runs import run_request
from attention_viz.trace.trace import Trace
from tests.shipped import shipped

PICTURES = ("shapes-two", "shapes-three", "shapes-alike", "shapes-four", "shapes-one")
QUESTIONS = (
    "what colour is the circle ?", "what colour is the square ?", "what is red ?", "what is blue ?",
    "what is top left ?", "where is the circle ?",
)  # fmt: skip
VISITORS = [(picture, question) for picture in PICTURES for question in QUESTIONS]


def test_thirty_visitors_who_ask_about_images_at_once_get_their_own_answers() -> None:
    assert len(VISITORS) == 30
    start = threading.Barrier(30)

    def ask(picture: str, question: str) -> Trace:
        start.wait(60)
        return run_request(Request(model="shapes", text=question, shown=picture)).trace

    with ThreadPoolExecutor(30) as pool:
        traces = [future.result(300) for future in [pool.submit(ask, *one) for one in VISITORS]]
    model = shipped("shapes")
    for (picture, question), trace in zip(VISITORS, traces, strict=True):
        own = model.trace(question, picture=av.Picture(SAMPLES[picture].path))
        assert trace.provenance.text == question and trace.fidelity.ok
        assert torch.allclose(trace.output, own.output, atol=1e-4)
        assert torch.equal(trace.seen.pictures[0], own.seen.pictures[0])
    answers = {(one[0], int(trace.output[-1].argmax())) for one, trace in zip(VISITORS, traces, strict=True)}
    assert len(answers) > len(PICTURES)  # a control: the questions have different answers


def test_the_first_words_with_an_image_take_a_second_more_than_the_plain_run_at_most() -> None:
    model = av.load("shapes")  # which measured no image yet
    picture = av.Picture(SAMPLES["shapes-two"].path)
    begun = time.process_time()
    trace = model.trace(QUESTIONS[0], picture=picture)
    assert trace.fidelity.ok and pack(trace)
    taken = time.process_time() - begun
    assert model.reader is not None
    tensors: Any = model.reader.read(Beside(f"<image>{QUESTIONS[0]}", (picture,))).tensors
    begun = time.process_time()
    with torch.no_grad():
        model.hf_model(**tensors)
    assert taken - (time.process_time() - begun) <= 1.0
