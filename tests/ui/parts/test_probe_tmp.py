import re, json, sys
sys.path.insert(0, "/tmp/wt/lead")
from tests.conftest import *
from tests.ui.parts.test_layout import STYLED, LISTEN
SRC = """() => new Promise(resolve => {
  const name = n => { const e = n && (n.nodeType === 1 ? n : n.parentElement); let o=[]; for (let p=e; p && o.length<5; p=p.parentElement) o.push((p.className?.baseVal ?? p.className ?? '').split(' ').filter(c=>!c.startsWith('st-emotion')).join('.')||p.tagName); return o.join(' < '); };
  const tell = l => resolve(l.map(e => [e.value.toFixed(3), e.startTime>=window.styledFrom && e.startTime<window.styledTo, Math.round(e.startTime), e.sources.map(s => [name(s.node), s.previousRect.x, s.previousRect.y, s.previousRect.width, s.previousRect.height,'->', s.currentRect.x, s.currentRect.y, s.currentRect.width, s.currentRect.height].join(' '))]));
  new PerformanceObserver(l => tell(l.getEntries())).observe({type: "layout-shift", buffered: true});
  setTimeout(() => tell([]), 250);
})"""
def test_it(browser, app_server, idle):
    with open("/tmp/probe.txt", "w") as out:
        for rate in (1, 1, 4, 8, 1, 6):
            context = browser.new_context(); screen = context.new_page()
            screen.add_init_script(f"{LISTEN};{STYLED}")
            screen.set_viewport_size({"width": 390, "height": 844})
            context.new_cdp_session(screen).send("Emulation.setCPUThrottlingRate", {"rate": rate})
            screen.goto(app_server.address + "/learn")
            screen.get_by_text(re.compile("^Verified|^Show the answer$")).first.wait_for(timeout=90_000, state="attached")
            idle(screen)
            print("RATE", rate, file=out)
            for e in screen.evaluate(SRC):
                print(*e[:3], file=out)
                for s in e[3]: print("    ", s, file=out)
            out.flush()
            context.close()
