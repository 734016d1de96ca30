"""Every recipe by the name of its model: a new one is a module with a RECIPE, and a line here."""

from recipes import coreference, induction, lists, recall, recall_mamba, shapes, translation
from recipes.recipe import Recipe

__all__ = ["RECIPES"]

RECIPES: dict[str, Recipe] = {
    "coreference": coreference.RECIPE,
    "induction": induction.RECIPE,
    "translation": translation.RECIPE,
    "lists": lists.RECIPE,
    "recall": recall.RECIPE,
    "recall-mamba": recall_mamba.RECIPE,
    "shapes": shapes.RECIPE,
}
