// Hands the page's own choice of a head to the explorer beside it, without the weights being sent again.

export default function channelComponent({data}) {
  const channel = (globalThis[Symbol.for("attention_viz.explorer")] ??= {latest: new Map(), target: new EventTarget()});
  channel.latest.set(data.explorer, data);
  channel.target.dispatchEvent(new CustomEvent("choice", {detail: data}));
  return () => {
    if (channel.latest.get(data.explorer) === data) channel.latest.delete(data.explorer);
  };
}
