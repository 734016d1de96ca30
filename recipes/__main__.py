"""Train the small models that ship, and write them with their cards.

Usage: python -m recipes [NAME ...] [--out FOLDER]
"""

import argparse
import hashlib
import time
from pathlib import Path

import torch
from transformers.utils import logging

from recipes.registry import RECIPES
from recipes.saving import save
from recipes.training import say

SHIPPED = Path(__file__).parents[1] / "attention_viz" / "sources" / "trained"


def main() -> None:
    """Train those that were asked for, one after another."""
    parser = argparse.ArgumentParser(prog="python -m recipes", description="Train the small models that ship.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(RECIPES)}; all by default")
    parser.add_argument("--out", type=Path, default=SHIPPED, help="where to write; by default into the package")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.names) - RECIPES.keys())
    if unknown:
        parser.error(f"no recipe {', '.join(unknown)}; there are {', '.join(RECIPES)}")
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    torch.set_num_threads(1)  # sums in another order would give other weights
    for name in arguments.names or RECIPES:
        make(name, arguments.out / name)


def make(name: str, folder: Path) -> None:
    """Train one model and write it."""
    say(f"{name}: training")
    start = time.process_time()
    recipe = RECIPES[name]
    trained = recipe.train(recipe.seed)
    say(f"{name}: trained in {time.process_time() - start:.0f} s of CPU; measuring what was saved")
    for figure, value in save(recipe, trained, folder).items():
        say(f"  {figure}: {value if isinstance(value, int) else format(value, '.3f')}")
    sha256 = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    say(f"{name}: written to {folder}; its weights have sha256 {sha256}")


if __name__ == "__main__":
    main()
