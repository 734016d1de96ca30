// Which example is meant stands in the address; its bytes come in a script of the head's.
const [head, at] = location.hash.slice(1).split("/");
const payload = document.getElementById("payload");
if (/^head-[\w.]+-\d+-\d+$/.test(head ?? "")) {
  const back = document.getElementById("back");
  back.href = `${head}.html`;
  back.textContent = "Back to the head";
  const [, layer, number] = head.match(/-(\d+)-(\d+)$/);
  document.getElementById("what").textContent =
    `An example of head ${layer}·${number}, with the other heads of its layer`;
  const script = document.createElement("script");
  script.src = `explored/${head}.js`;
  script.addEventListener("load", () => {
    payload.textContent = window.EXPLORED[Number(at)] ?? "";
    if (payload.textContent) void window.drawExplorer();
  });
  document.body.append(script);
}
