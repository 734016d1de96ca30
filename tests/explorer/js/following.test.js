import assert from "node:assert/strict";
import {test} from "node:test";
import {setTimeout as pause} from "node:timers/promises";

import {follow} from "../../../attention_viz/explorer/static/hosts/following.js";

const START = {stream: "decoder", layer: 0, head: 0, query: null, key: null};

/** An explorer that holds the heads of some layers, and a host; both write down what they hear. */
function together(held = [0], first = null) {
  const heard = {asked: [], selected: [], chosen: [], received: [], ranked: [], found: [], destroyed: 0};
  let [choice, selection] = [START, START];
  const hosts = {};
  const explorer = {
    choice: () => choice,
    choose: (wanted) => {
      choice = {...choice, ...wanted};
      heard.chosen.push(choice);
    },
    holds: ({layer}) => held.includes(layer),
    receive: async (packet) => heard.received.push(packet),
    rank: (ranking) => heard.ranked.push(ranking),
    find: (findings) => heard.found.push(findings),
    destroy: () => (heard.destroyed += 1),
  };
  const shown = follow(
    (hosting) => {
      Object.assign(hosts, hosting);
      return explorer;
    },
    {
      first,
      selection: () => selection,
      select: (next) => {
        selection = next;
        heard.selected.push(next);
        hosts.hear(); // as models do, also of their own changes
      },
      listen: (hear) => Object.assign(hosts, {hear}),
      send: (question) => heard.asked.push(question),
      receive: (take) => Object.assign(hosts, {take}),
    },
  );
  return {
    heard,
    hosts,
    shown,
    click: (wanted) => {
      choice = {...choice, ...wanted};
      hosts.onChoice(choice);
    },
    set: (wanted) => {
      selection = {...selection, ...wanted};
      hosts.hear();
    },
  };
}

test("a click reaches the host once and isn't shown anew", () => {
  const {heard, click} = together();
  click({head: 3, arrived: false, single: false});
  assert.deepEqual(heard.selected, [{...START, head: 3}]);
  assert.deepEqual([heard.chosen, heard.asked], [[], []]);
});

test("what the host sets is shown, and not told back to it", () => {
  const {heard, set} = together();
  set({head: 5, query: 4, key: 2});
  assert.deepEqual(heard.chosen, [{...START, head: 5, query: 4, key: 2}]);
  assert.deepEqual(heard.selected, []);
});

test("a head that isn't here is asked for, at first, by a click and by the host", async () => {
  const {heard, click, set} = together([]);
  const [first] = heard.asked;
  assert.deepEqual(first, {kind: "head", stream: "decoder", layer: 0, head: 0});
  await pause(450);
  click({layer: 1, head: 2});
  assert.deepEqual(heard.asked.at(-1), {kind: "head", stream: "decoder", layer: 1, head: 2});
  await pause(450);
  set({layer: 2, head: 1});
  assert.deepEqual(heard.asked.at(-1), {kind: "head", stream: "decoder", layer: 2, head: 1});
  assert.equal(heard.asked.length, 3);
});

test("of a walk through heads only its end is asked for", async () => {
  const {heard, click} = together([0]);
  await pause(450);
  click({layer: 1, head: 0});
  for (const head of [1, 2, 3]) click({layer: 1, head});
  await pause(250);
  assert.deepEqual(
    heard.asked.map(({head}) => head),
    [0, 3],
  );
});

test("packets, rankings and findings reach the explorer, questions about a pair the host", () => {
  const {heard, hosts} = together();
  const packet = new Uint8Array(2);
  hosts.take({packet});
  hosts.take({ranking: {query: 1}});
  hosts.take({findings: []});
  hosts.onPair({of: "x", stream: "decoder", query: 1, key: 0});
  assert.deepEqual([heard.received, heard.ranked, heard.found], [[packet], [{query: 1}], [[]]]);
  assert.deepEqual(heard.asked, [{kind: "pair", of: "x", stream: "decoder", query: 1, key: 0}]);
});

test("one channel is asked for though its layer is here, and nothing once it is gone", async () => {
  const {heard, click, shown} = together();
  await pause(450);
  click({head: 7, single: true});
  assert.equal(heard.asked.length, 1);
  click({head: 8, single: true});
  shown.destroy();
  await pause(250);
  assert.deepEqual([heard.asked.length, heard.destroyed], [1, 1]);
});

test("the opening head may come along, and what is asked for then waits for it", async () => {
  const packet = new Uint8Array(1);
  const {heard} = together([], packet);
  assert.deepEqual([heard.received, heard.asked], [[packet], []]);
  await pause(20);
  assert.equal(heard.asked.length, 1);
});
