"""The course's lessons in order; add a file in `screens`, a text, a line here."""

from attention_viz.lesson.lesson import Lesson
from attention_viz.lesson.screens import (
    cost,
    cross,
    heads,
    masks,
    mixture,
    older,
    plain,
    positions,
    practice,
    recurrent,
    roles,
    scaling,
    scores,
    softmax,
    vectors,
    why,
)
from attention_viz.lesson.screens.seen import picture, sound
from attention_viz.lesson.screens.trained import jobs, limits, together, writes

__all__ = ["LESSONS"]

LESSONS: dict[str, Lesson] = {
    "why": why.LESSON,
    "vectors": vectors.LESSON,
    "plain": plain.LESSON,
    "roles": roles.LESSON,
    "scores": scores.LESSON,
    "scaling": scaling.LESSON,
    "softmax": softmax.LESSON,
    "mixture": mixture.LESSON,
    "masks": masks.LESSON,
    "heads": heads.LESSON,
    "jobs": jobs.LESSON,
    "together": together.LESSON,
    "writes": writes.LESSON,
    "positions": positions.LESSON,
    "cross": cross.LESSON,
    "picture": picture.LESSON,
    "sound": sound.LESSON,
    "older": older.LESSON,
    "recurrent": recurrent.LESSON,
    "cost": cost.LESSON,
    "practice": practice.LESSON,
    "limits": limits.LESSON,
}
