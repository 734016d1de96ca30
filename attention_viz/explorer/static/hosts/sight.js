// An empty place that tells the page once it comes into sight.

/** @import {Mounting} from "./hosting.js" */

/** @param {Mounting} mounting */
export default function sightComponent({data, parentElement, setTriggerValue}) {
  const place = /** @type {HTMLElement} */ (parentElement.querySelector(".av-sight"));
  place.style.height = `${/** @type {{height: number}} */ (data).height}px`;
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some(({isIntersecting}) => isIntersecting)) return;
    observer.disconnect();
    setTriggerValue("seen", true);
  });
  observer.observe(place);
  return () => observer.disconnect();
}
