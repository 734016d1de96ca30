"""A run as slides for a room: a question, its answer, and the one row of numbers that shows it; needs traces only."""

from attention_viz.analysis.slides.changed import changed_slides
from attention_viz.analysis.slides.compared import compared_slides
from attention_viz.analysis.slides.found import found_slides
from attention_viz.analysis.slides.slide import Picture, Slide

__all__ = ["Picture", "Slide", "changed_slides", "compared_slides", "found_slides"]
