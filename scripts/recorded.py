"""Record the runs that the app opens with: `make recorded`, after a model or the payload changed."""

from attention_viz.serving.recorded import write_recorded
from attention_viz.serving.runs import run_request
from attention_viz.ui.address.state import OPENINGS, State, own_example
from attention_viz.ui.packing import payload_of


def main() -> None:
    """Record each run."""
    for model in OPENINGS:
        request = State(model=model, text=own_example(model)).request
        payload = payload_of(run_request(request))
        write_recorded(request, payload)
        print(f"{model}: “{request.text}”, {len(payload):,} bytes")


if __name__ == "__main__":
    main()
