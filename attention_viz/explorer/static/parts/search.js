// Which heads link one token to another: all heads ranked by that one weight.

import {element, threeDigits} from "./element.js";

const MOST_HEADS = 10;

/** Two pickers and a ranked list; choosing a cell of the matrix fills the pickers. */
export function createSearch(view) {
  const {store} = view;
  const pick = (label, name, role) =>
    element("select", {
      class: role,
      "aria-label": label,
      onchange: (event) => store.set({[name]: Number(event.target.value)}),
    });
  const [query, key] = [pick("Query token", "pairQuery", "av-query"), pick("Key token", "pairKey", "av-keys")];
  const list = element("ol", {});
  const title = element("h2", {}, "Which heads link", query, "to", key);
  const node = element(
    "section",
    {class: "av-search", "data-testid": "explorer-search", "aria-label": "Search for heads"},
    title,
    list,
  );
  list.onclick = (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const {pairQuery, pairKey} = store.state;
    view.pin({query: pairQuery, key: pairKey}, {pair: true});
    view.choose({layer: Number(button.dataset.layer), head: Number(button.dataset.head)});
  };
  return {
    node,
    draw(changed) {
      const {stream} = view.now;
      const {pairQuery, pairKey} = store.state;
      if (changed.has("stream")) {
        fill(query, stream.queries);
        fill(key, stream.keys);
      }
      query.value = String(pairQuery);
      key.value = String(pairKey);
      if (["stream", "pairQuery", "pairKey", "loaded", "layer", "head"].some((name) => changed.has(name)))
        rank(view, list);
    },
  };
}

function fill(select, axis) {
  select.replaceChildren(...axis.names.map((name, place) => element("option", {value: place, dir: "auto", "aria-label": axis.spoken[place]}, name)));
}

function rank(view, list) {
  const {stream: name, layer: layerChosen, head: headChosen, pairQuery, pairKey} = view.store.state;
  const [found, total] = [[], view.now.stream.layers.reduce((sum, {heads}) => sum + heads, 0)];
  let missing = false;
  view.now.stream.layers.forEach(({heads}, layer) => {
    for (let number = 0; number < heads; number++) {
      const head = view.recording.head({stream: name, layer, head: number});
      missing ||= head === null;
      if (head && !head.isBlocked(pairQuery, pairKey)) found.push({layer, number, weight: head.at(pairQuery, pairKey)});
    }
  });
  found.sort((a, b) => b.weight - a.weight || a.layer - b.layer || a.number - b.number);
  const none = missing ? "\u2026" : "No head may: the cell is blocked.";
  const entries = found.length ? rankedHeads(view, found, layerChosen, headChosen) : [element("li", {class: "av-quiet"}, none)];
  // The list keeps its height, so that nothing below it jumps.
  while (entries.length < Math.min(total, MOST_HEADS)) entries.push(element("li", {"aria-hidden": "true"}));
  list.replaceChildren(...entries);
}

function rankedHeads(view, found, layerChosen, headChosen) {
  return (
    found.slice(0, MOST_HEADS).map(({layer, number, weight}) => {
      const fillBar = element("span", {class: "av-fill av-accent-fill"});
      fillBar.style.width = `${100 * weight}%`;
      const chosen = layer === layerChosen && number === headChosen;
      return element(
        "li",
        {},
        element(
          "button",
          {type: "button", "data-layer": layer, "data-head": number, "aria-current": chosen ? "true" : null},
          element("span", {}, view.recording.headName(layer, number)),
          element("span", {class: "av-track"}, fillBar),
          element("span", {class: "av-number"}, threeDigits(weight)),
        ),
      );
    })
  );
}
