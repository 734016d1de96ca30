import assert from "node:assert/strict";
import {test} from "node:test";

import {
  headingPlaces,
  layHeads,
  mostHeads,
  placeOf,
  seatOf,
  smallestCell,
  tableSize,
  tracksOf,
} from "../../../attention_viz/explorer/static/heads/layout.js";

const model = (layers, heads) => Array.from({length: layers}, () => ({heads}));
const MODELS = {"6 × 12": model(6, 12), "30 × 9": model(30, 9), "32 × 32": model(32, 32), "48 × 64": model(48, 64)};
// The column of the grid beside a panel, in a file and alone, its row, and a phone.
const PLACES = [
  {width: 447, height: 360},
  {width: 506, height: 360},
  {width: 660, height: 360},
  {width: 894, height: 610},
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

test("a grid that isn't as tall as a thumbnail may be fills its place, across or down", () => {
  everyPlace((layers, place, layout, words) => {
    const {width, height} = tableSize(layout);
    if (layout.width >= 64 || layout.height >= 64) return;
    const across = layout.turned ? layout.lines : layout.heads * layout.blocks;
    const down = layout.turned ? layout.heads * layout.blocks : layout.lines;
    // Whole pixels, and gaps of whole pixels, leave less than four for each cell.
    assert.ok(place.width - width < 4 * across || place.height - height < 4 * down, words);
  });
});

test("many layers of few heads stand in two blocks, or turned on their side where that makes cells larger", () => {
  assert.deepEqual(pick(layHeads(MODELS["30 × 9"], PLACES[0])), {turned: false, blocks: 2, lines: 15});
  assert.deepEqual(pick(layHeads(model(24, 16), PLACES[1])), {turned: true, blocks: 1, lines: 24});
  assert.deepEqual(pick(layHeads(MODELS["6 × 12"], PLACES[0])), {turned: false, blocks: 1, lines: 6});
  assert.deepEqual(pick(layHeads(MODELS["32 × 32"], PLACES[3])), {turned: false, blocks: 1, lines: 32});
});

const pick = ({turned, blocks, lines}) => ({turned, blocks, lines});

test("each head has a cell of its own in the tracks, and its layer's number beside it", () => {
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
    for (let head = 0; head < layers[0].heads; head += 1)
      for (const {row, column} of headingPlaces(layout, head)) taken.add(`${row} ${column}`);
    const heads = mostHeads(layers);
    assert.equal(taken.size, layers.length * (heads + 1) + layout.blocks * heads, words);
  });
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
  assert.equal(layHeads(MODELS["6 × 12"], place).height, 33);
  assert.equal(layHeads(MODELS["6 × 12"], {...place, tallest: 1.6}).height, 52);
});

test("a cell is never larger than 64 px, and there is one even without any room", () => {
  const large = layHeads(model(2, 2), {width: 5000, height: 5000});
  assert.deepEqual([large.width, large.height], [64, 64]);
  const none = layHeads(model(30, 9), {width: 0, height: 0});
  assert.ok(none.width >= 1 && none.height >= 1);
});

test("the grid stands beside the matrix while its cells are large enough there, else in more room", () => {
  const seats = (layers) => [1328, 1200, 920, 358].map((width) => seatOf(layers, width, 360));
  assert.deepEqual(seats(MODELS["6 × 12"]), ["beside", "beside", "beside", "beside"]);
  assert.deepEqual(seats(MODELS["30 × 9"]), ["beside", "beside", "beside", "beside"]);
  assert.deepEqual(seats(MODELS["32 × 32"]), ["wider", "wider", "below", "beside"]);
  assert.equal(seatOf(MODELS["32 × 32"], 1032, 360), "wider");
  assert.deepEqual(seats(MODELS["48 × 64"]), ["wider", "wider", "below", "beside"]);
});
