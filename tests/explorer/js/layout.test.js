import assert from "node:assert/strict";
import {test} from "node:test";

import {
  headingPlaces,
  layHeads,
  placeOf,
  seatOf,
  smallestCell,
  tableSize,
  tracksOf,
} from "../../../attention_viz/explorer/static/heads/layout.js";

const model = (layers, heads) => Array.from({length: layers}, () => ({heads}));
const MODELS = {"6 × 12": model(6, 12), "30 × 9": model(30, 9), "32 × 32": model(32, 32), "48 × 64": model(48, 64)};
// The column of the grid beside a panel, in a file and alone, its row, a large screen, and a phone.
const PLACES = [
  {width: 447, height: 360},
  {width: 506, height: 360},
  {width: 660, height: 360},
  {width: 894, height: 610},
  {width: 1400, height: 580},
  {width: 358, height: 334},
];

function everyPlace(check) {
  for (const [name, layers] of Object.entries(MODELS))
    for (const place of PLACES) check(layers, place, layHeads(layers, place), `${name} in ${place.width} px`);
}

test("no grid is wider than its place, and none that can do with its height is higher", () => {
  everyPlace((layers, place, layout, words) => {
    const {width, height} = tableSize(layout);
    assert.ok(width <= place.width, words);
    if (layout.height > smallestCell(layers)) assert.ok(height <= place.height, words);
  });
});

test("cells are never under 18 px, or 8 px where there are more than 1,500 heads", () => {
  everyPlace((layers, place, layout, words) => {
    const least = layers.length * layers[0].heads > 1500 ? 8 : 18;
    assert.ok(layout.width >= least && layout.height >= least, `${words}: ${layout.width} × ${layout.height}`);
  });
  assert.equal(smallestCell(MODELS["32 × 32"]), 18);
  assert.equal(smallestCell(MODELS["48 × 64"]), 8);
});

test("all layers stand in one band wherever its cells are large enough and the height suffices", () => {
  everyPlace((layers, place, layout, words) => {
    const one = {width: (place.width - 20) / layers.length - 1, height: (place.height - 16) / layers[0].heads - 1};
    if (Math.min(Math.floor(one.width), Math.floor(one.height)) >= smallestCell(layers))
      assert.equal(layout.bands, 1, words);
  });
  const bands = (name) => PLACES.map((place) => layHeads(MODELS[name], place).bands);
  assert.deepEqual(bands("6 × 12"), [1, 1, 1, 1, 1, 1]);
  assert.deepEqual(bands("30 × 9"), [2, 2, 1, 1, 1, 2]);
});

test("each head has a cell of its own in the tracks, its layer's number above and its own beside it", () => {
  everyPlace((layers, place, layout, words) => {
    const {columns, rows} = tracksOf(layout);
    const [across, down] = [columns, rows].map(countTracks);
    const taken = new Set();
    layers.forEach(({heads}, layer) => {
      for (let head = -1; head < heads; head += 1) {
        const {row, column} = placeOf(layout, layer, head);
        assert.ok(row >= 1 && row <= down && column >= 1 && column <= across, `${words}: ${layer} ${head}`);
        taken.add(`${row} ${column}`);
      }
    });
    const {heads} = layers[0];
    for (let head = 0; head < heads; head += 1)
      for (const {row, column} of headingPlaces(layout, head)) taken.add(`${row} ${column}`);
    assert.equal(taken.size, layers.length * (heads + 1) + layout.bands * heads, words);
  });
  const layout = layHeads(MODELS["6 × 12"], PLACES[0]);
  assert.deepEqual(placeOf(layout, 4, 2), {row: 4, column: 6});
});

function countTracks(tracks) {
  return [...tracks.matchAll(/repeat\((\d+)/g)].reduce((sum, [, count]) => sum + 1 + Number(count), 0);
}

test("numbers are written so far apart that they can be read", () => {
  const {every, width, height, gap} = layHeads(MODELS["48 × 64"], PLACES[2]);
  assert.ok(every.across * (width + gap) >= 18);
  assert.ok(every.down * (height + gap) >= 12);
  assert.deepEqual(layHeads(MODELS["6 × 12"], PLACES[0]).every, {across: 1, down: 1});
});

test("cells may be higher than wide where that is asked for", () => {
  const place = {width: 455, height: 376};
  assert.equal(layHeads(model(12, 6), place).height, 33);
  assert.equal(layHeads(model(12, 6), {...place, tallest: 1.6}).height, 52);
});

test("a cell is never larger than 96 px, and there is one even without any room", () => {
  const large = layHeads(model(2, 2), {width: 5000, height: 5000});
  assert.deepEqual([large.width, large.height], [96, 96]);
  const none = layHeads(model(30, 9), {width: 0, height: 0});
  assert.ok(none.width >= 1 && none.height >= 1);
});

test("the grid stands beside the matrix while its cells are large enough there, else in more room", () => {
  const seats = (layers) => [1328, 1200, 920, 358].map((width) => seatOf(layers, width, 360).seat);
  assert.deepEqual(seats(MODELS["6 × 12"]), ["beside", "beside", "beside", "beside"]);
  assert.deepEqual(seats(MODELS["30 × 9"]), ["wider", "wider", "below", "beside"]);
  assert.deepEqual(seats(MODELS["32 × 32"]), ["wider", "wider", "below", "beside"]);
});
