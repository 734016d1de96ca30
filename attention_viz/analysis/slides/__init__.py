"""A run as slides for a room: a question, its answer, and the one row of numbers that shows it; needs traces only."""

from attention_viz.analysis.slides.found import found_slides
from attention_viz.analysis.slides.heads import PutIn, Wrote, put_slides, role_slides, written_slides
from attention_viz.analysis.slides.rows import changed_slides, compared_slides
from attention_viz.analysis.slides.slide import GivenTable, ShownPicture, Slide, SlidePicture, picture_shown

__all__ = [
    "GivenTable",
    "PutIn",
    "ShownPicture",
    "Slide",
    "SlidePicture",
    "Wrote",
    "changed_slides",
    "compared_slides",
    "found_slides",
    "picture_shown",
    "put_slides",
    "role_slides",
    "written_slides",
]
