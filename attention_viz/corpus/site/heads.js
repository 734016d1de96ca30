// What is typed is looked for in heads, roles and the words of examples; the first fifty are listed.
const box = document.getElementById("search");
const list = document.getElementById("found");
const linked = (file, name) => {
  const link = document.createElement("a");
  link.href = file;
  link.textContent = name;
  return link;
};
box.addEventListener("input", () => {
  const wanted = box.value.trim().toLowerCase();
  const found = wanted
    ? window.HEADS.filter(([, name, words]) => `${name} ${words}`.toLowerCase().includes(wanted))
    : [];
  list.replaceChildren(
    ...found.slice(0, 50).map(([file, name]) => {
      const item = document.createElement("li");
      item.append(linked(file, name));
      return item;
    }),
  );
  if (wanted && !found.length) {
    const none = document.createElement("li");
    none.textContent = "No matches.";
    list.append(none);
  }
});
box.addEventListener("keydown", (pressed) => {
  if (pressed.key !== "Escape") return;
  box.value = "";
  list.replaceChildren();
});

// On a head's page all heads of its stream stand in small, layers across, each of which leads to its page.
const atlas = document.getElementById("atlas");
if (atlas) {
  const own = window.HEADS.find(([file]) => file === atlas.dataset.head);
  const heads = window.HEADS.filter((one) => one[3] === own[3]);
  const grid = document.createElement("div");
  grid.className = "small";
  const told = document.createElement("p");
  told.className = "note";
  const tell = (one) => {
    told.textContent = `${one[1]}, ${one[7].toFixed(2)} · layers across, heads down`;
  };
  for (const one of heads) {
    const [file, name, , , layer, head, role, share] = one;
    const link = linked(file, "");
    link.setAttribute("aria-label", name);
    link.style.cssText = `grid-column:${layer + 1};grid-row:${head + 1};--role:var(--role-${role});--s:${share}`;
    if (one === own) link.setAttribute("aria-current", "page");
    link.addEventListener("pointerenter", () => tell(one));
    link.addEventListener("focus", () => tell(one));
    grid.append(link);
  }
  grid.addEventListener("pointerleave", () => tell(own));
  tell(own);
  atlas.append(grid, told);
}
