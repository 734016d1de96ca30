// An explorer and the host that holds its choice: each follows the other, and heads that aren't here are asked for.

/** @import {Explorer, Hosting} from "../explorer.js"
 * @import {HeadChoice, Ranking} from "../data/recording.js"
 * @import {PackedFinding} from "../data/payload.js" */

/** The choice as a host keeps it: the head, and the pair of tokens or null.
 * @typedef {Pick<HeadChoice, "stream" | "layer" | "head" | "query" | "key">} Selection */

/** What a host answers: a packet with a head or small pictures, a ranking, or findings.
 * @typedef {{packet?: Uint8Array, ranking?: Ranking, findings?: PackedFinding[]}} Answer */

/** `select` keeps a choice, `listen` hears of others, also of those that it was told itself; `send` asks and `receive`
 * hears answers; `first` is the packet of the opening head, if it came along.
 * @typedef {{first?: Uint8Array | null, selection: () => Selection, select: (selection: Selection) => void, listen: (hear: () => void) => void,
 *   send: (question: Record<string, unknown>) => void, receive: (take: (answer: Answer) => void) => void}} Host */

// Choices that follow each other sooner than this, in milliseconds, are steps of a walk: only where it ends is asked for.
const [WALK, PAUSE] = [400, 100];

/** Show an explorer that follows its host, and the other way round.
 * @param {(hosting: Required<Pick<Hosting, "choice" | "onChoice" | "onPair">>) => Explorer} mount @param {Host} host
 * @returns {Explorer} */
export function follow(mount, host) {
  let [timer, last] = [0, -Infinity];
  const ask = (/** @type {HeadChoice} */ choice) => {
    clearTimeout(timer);
    const now = performance.now();
    const wait = now - last < WALK ? PAUSE : 0;
    last = now;
    // A single channel is never among what came with the text.
    if (explorer.holds(choice) && !choice.single) return;
    const {stream, layer, head} = choice;
    const send = () => host.send({kind: "head", stream, layer, head});
    if (wait) timer = Number(setTimeout(send, wait));
    else send();
  };
  const explorer = mount({
    choice: host.selection(),
    onChoice(choice) {
      ask(choice);
      host.select(selectionIn(choice));
    },
    onPair: (pair) => host.send({kind: "pair", ...pair}),
  });
  host.listen(() => {
    const wanted = host.selection();
    if (isSelected(wanted, selectionIn(explorer.choice()))) return;
    explorer.choose(wanted);
    ask({...explorer.choice(), ...wanted});
  });
  host.receive(({packet, ranking, findings}) => {
    if (packet) explorer.receive(packet);
    if (ranking) explorer.rank(ranking);
    if (findings) explorer.find(findings);
  });
  const begin = () => ask(explorer.choice());
  if (host.first) explorer.receive(host.first).then(begin);
  else begin();
  return {
    ...explorer,
    destroy() {
      clearTimeout(timer);
      explorer.destroy();
    },
  };
}

/** @param {HeadChoice} choice @returns {Selection} */
function selectionIn({stream, layer, head, query = null, key = null}) {
  return {stream, layer, head, query, key};
}

/** @param {Selection} one @param {Selection} other */
function isSelected(one, other) {
  const names = /** @type {(keyof Selection)[]} */ (["stream", "layer", "head", "query", "key"]);
  return names.every((name) => (one[name] ?? null) === (other[name] ?? null));
}
