"""A server that doesn't answer any more: what the page says meanwhile, and that it goes on afterwards."""

import re

from playwright.sync_api import Browser, WebSocketRoute, expect

from tests.conftest import Server

ASKED = re.compile("/_stcore/")
TYPED = "The cat sat because it was tired"


def test_a_lost_server_is_told_of_in_plain_words_and_what_was_typed_stays(browser: Browser, app_server: Server) -> None:
    context = browser.new_context()
    page, sockets = context.new_page(), list[WebSocketRoute]()

    def through(socket: WebSocketRoute) -> None:
        sockets.append(socket)
        _ = socket.connect_to_server()

    page.route_web_socket(ASKED, through)
    page.goto(app_server.address)
    box = page.get_by_label("Sentence", exact=True)
    expect(page.get_by_text("Verified").first).to_be_visible(timeout=90_000)
    box.fill(TYPED)
    page.route(ASKED, lambda route: route.abort())
    for one in sockets:
        one.close()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("The server of this app doesn't respond", timeout=60_000)
    # Streamlit's own words ask for an internet that nothing needs, or for a command that is another program's.
    expect(dialog.get_by_text(re.compile("Streamlit|internet"))).to_be_hidden()
    page.unroute(ASKED)
    expect(dialog).to_have_count(0, timeout=90_000)
    expect(box).to_have_value(TYPED)
    context.close()
