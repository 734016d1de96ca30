"""Take the documentation's screenshots from the running app, so that they are up to date.

Run as `.venv/bin/python -m scripts.pictures`; writes into docs/images/.
"""

from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from scripts import serve
from scripts.browser import LAUNCH_FLAGS, NONE_FOUND, find

FOLDER = Path(__file__).parent.parent / "docs" / "images"

# It opens on the text's best finding.
MARY = "/?model=SmolLM2-135M-Instruct&text=When+Mary+and+John+went+to+the+store%2C+John+gave+a+drink+to"
# File, address, dark or light, width and height.
PICTURES = (
    ("explore.png", MARY, False, 1360, 860),
    ("explore-dark.png", MARY, True, 1360, 860),
)


def main() -> None:
    """Start the app, take every screenshot, stop it."""
    found = find()
    if found is None:
        raise SystemExit(NONE_FOUND)
    FOLDER.mkdir(parents=True, exist_ok=True)
    port = serve.free_port()
    process = serve.start(port, "--server.address=127.0.0.1")
    try:
        if not serve.wait_until_healthy(process, port):
            raise SystemExit("The app did not start; see its log.")
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=found, args=list(LAUNCH_FLAGS))
            for name, address, dark, width, height in PICTURES:
                take(browser, FOLDER / name, f"http://127.0.0.1:{port}{address}", dark, width, height)
                print(f"docs/images/{name}")
    finally:
        serve.stop(process)


def take(browser: Browser, path: Path, address: str, dark: bool, width: int, height: int) -> None:
    """Take one screenshot, once the badge shows that everything is loaded."""
    context = browser.new_context(
        color_scheme="dark" if dark else "light", viewport={"width": width, "height": height}, device_scale_factor=1.5
    )
    screen = context.new_page()
    screen.goto(address)
    screen.get_by_text("Verified").first.wait_for(timeout=90_000)
    screen.get_by_test_id("explorer-sentence").wait_for()
    screen.wait_for_timeout(600)
    screen.screenshot(path=path)
    context.close()


if __name__ == "__main__":
    main()
