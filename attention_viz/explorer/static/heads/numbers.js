// Layers by the model's own numbers, and by their places among those that are here.

/** @import {HeadChoice, Ranking, Recording} from "../data/recording.js" */

/** The number of a layer. Where layers come without numbers, these are their places.
 * @param {{number?: number}[]} layers
 * @param {number} place  of the layer among those that are here */
export function layerNumber(layers, place) {
  return layers[place].number ?? place;
}

/** The place of the layer with a number; -1 where there is none.
 * @param {{number?: number}[]} layers @param {number} number */
export function layerPlace(layers, number) {
  return layers.findIndex((_, place) => layerNumber(layers, place) === number);
}

/** The nearest head that there is to one that a host asks for, by its layer's number; its layer by its place.
 * @param {Pick<Recording, "stream" | "nearest">} recording
 * @param {{stream?: string, layer?: unknown, head?: unknown}} wanted */
export function placed(recording, wanted) {
  const {layers} = recording.stream(wanted.stream);
  const number = Math.trunc(Number(wanted.layer)) || 0;
  const next = layers.findIndex((_, place) => layerNumber(layers, place) >= number);
  return recording.nearest({...wanted, layer: next < 0 ? layers.length - 1 : next});
}

/** A choice as hosts are told of it: its layer by its number.
 * @param {Pick<Recording, "stream">} recording @param {HeadChoice} choice @returns {HeadChoice} */
export function numbered(recording, choice) {
  return {...choice, layer: layerNumber(recording.stream(choice.stream).layers, choice.layer)};
}

/** A host's ranking, with layers by their places.
 * @param {Pick<Recording, "stream">} recording @param {Ranking} ranking @returns {Ranking} */
export function placedRanking(recording, ranking) {
  const {layers} = recording.stream(ranking.stream);
  return {...ranking, ranked: ranking.ranked.map((one) => ({...one, layer: layerPlace(layers, one.layer)}))};
}
