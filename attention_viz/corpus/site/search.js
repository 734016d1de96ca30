// What is typed is looked for in heads, roles and the words of examples; the first fifty are listed.
const box = document.getElementById("search");
const list = document.getElementById("found");
box.addEventListener("input", () => {
  const wanted = box.value.trim().toLowerCase();
  const found = wanted
    ? window.HEADS.filter(([, name, words]) => `${name} ${words}`.toLowerCase().includes(wanted))
    : [];
  list.replaceChildren(
    ...found.slice(0, 50).map(([file, name]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = file;
      link.textContent = name;
      item.append(link);
      return item;
    }),
  );
  if (wanted && !found.length) list.textContent = "Nothing of that kind.";
});
