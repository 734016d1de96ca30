"""A fresh server asked by many visitors at once, while it loads the model that the app opens on."""

import subprocess
import sys
import textwrap

# In a fresh interpreter: each thread begins with another of the modules that pages need, as visitors of other pages do.
PROGRAM = """
import importlib, sys, threading
from attention_viz.serving.runs import has_run, is_loaded
from attention_viz.ui.address.state import DEFAULT
from attention_viz.ui.process import begin_loading
assert "torch" not in sys.modules and not is_loaded(DEFAULT.model)
sys.setswitchinterval(1e-4)
names = [
    "attention_viz.recording.outputs.generation", "attention_viz.recording.recorder", "attention_viz.models.model",
    "attention_viz.models.loading.load_folder", "attention_viz.recording.implementation",
    "attention_viz.inputs.check", "attention_viz.circuits.gradient", "attention_viz.lesson.screens.masks",
]
start, problems = threading.Barrier(28), []
def visit(number):
    start.wait()
    try:
        importlib.import_module(names[number % len(names)])
    except BaseException as error:
        problems.append(repr(error))
threads = [threading.Thread(target=visit, args=(number,)) for number in range(28)]
for thread in threads: thread.start()
loading = begin_loading()
for thread in threads: thread.join()
loading.join()
print(len(problems), problems[:2], is_loaded(DEFAULT.model) and has_run(DEFAULT.request))
"""


def test_twenty_eight_visitors_of_a_fresh_server_import_what_they_need_and_the_first_model_loads() -> None:
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    ended = subprocess.run(program, capture_output=True, text=True, timeout=300, check=False)
    assert ended.stdout.strip() == "0 [] True", ended.stderr
