// How numbers, distances and payloads are said.

import { h } from './dom.js';

const whole = new Intl.NumberFormat('en');

export const count = (value) => whole.format(value);

/** "1 hit", "7 hits". */
export const counted = (value, one, many = `${one}s`) => `${count(value)} ${value === 1 ? one : many}`;

/** Three digits after the point; what is not quite 1 does not look like it. */
export const similarity = (value) => (value < 1 ? Math.min(value, 0.999) : value).toFixed(3);

/** Three significant digits, without an exponent. */
const short = (value) => (value >= 100 ? count(Math.round(value)) : String(Number(value.toPrecision(value >= 10 ? 3 : 2))));

export function bytes(value) {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];
  let unit = 0;
  while (value >= 1000 && unit < units.length - 1) {
    value /= 1000;
    unit += 1;
  }
  return `${unit === 0 ? count(value) : short(value)} ${units[unit]}`;
}

export function seconds(value) {
  if (value === 0) return '0 s';
  if (value < 1e-6) return `${short(value * 1e9)} ns`;
  if (value < 1e-3) return `${short(value * 1e6)} µs`;
  if (value < 1) return `${short(value * 1e3)} ms`;
  if (value < 120) return `${short(value)} s`;
  if (value < 7200) return `${short(value / 60)} min`;
  return value < 172800 ? `${short(value / 3600)} h` : `${short(value / 86400)} days`;
}

export const milliseconds = (value) => seconds(value / 1000);

export const perSecond = (value) => (value >= 10 ? count(Math.round(value)) : String(Number(value.toFixed(1))));

/** Shortened in the middle: of addresses both ends tell something. */
export function shorten(text, most = 60) {
  const letters = [...text];
  if (letters.length <= most) return text;
  const head = Math.ceil((most - 1) * 0.6);
  return `${letters.slice(0, head).join('')}…${letters.slice(head + 1 - most).join('')}`;
}

/** The similarity that a distance stands for, as the engine has it. */
export function similarityOf(distance, { bits, measure }) {
  const share = distance / bits;
  if (measure === 'cosine') return Math.cos(Math.PI * share);
  return measure === 'jaccard' ? Math.max(0, 1 - 2 * share) : 1 - share;
}

const MEASURES = { cosine: 'cosine', jaccard: 'Jaccard coefficient' };

/** The measure's name in a sentence. */
export const measureName = (measure) => MEASURES[measure] ?? 'share of equal bits';

/** "36 of 256 bits: as of a cosine of about 0.90". */
export function radiusMeaning(radius, stats) {
  const bits = `${radius} of ${stats.bits} bits`;
  if (radius === 0) return `${bits}: the same signature`;
  if (!(stats.measure in MEASURES)) return `${bits}: ${Math.floor(similarityOf(radius, stats) * 100)}% of them equal`;
  return `${bits}: as of a ${measureName(stats.measure)} of about ${similarityOf(radius, stats).toFixed(2)}`;
}

/** Similarity as a bar and a number; the bar says nothing more, so it is not read out. */
export function likeness(value) {
  const bar = h('span', { class: 'bar', 'aria-hidden': 'true' }, h('span', { class: 'bar-fill' }));
  bar.firstChild.style.width = `${Math.max(0, Math.min(1, value)) * 100}%`;
  return h('span', { class: 'likeness' }, bar, h('span', { class: 'number' }, similarity(value)));
}

/** What the service says, as a sentence: it begins in lower case and has no full stop, to be part of a longer message. */
export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

/** A name above its value, for lists of facts. */
export const fact = (name, ...value) => h('div', { class: 'fact' }, h('dt', {}, name), h('dd', {}, ...value));

const valueText = (value) => (typeof value === 'string' ? value : JSON.stringify(value));

/** Ids and values may be of any script and direction: `bdi` keeps them from turning their surroundings. */
export const idText = (id, most = 160) => h('bdi', { title: id.length > most ? id : null }, shorten(id, most));

/** The fields of a payload as quiet key-value chips. */
export function chips(payload, most = 8) {
  const fields = Object.entries(payload ?? {});
  if (fields.length === 0) return null;
  const chip = ([name, value]) => {
    const text = valueText(value);
    return h('div', { class: 'chip' }, h('dt', {}, shorten(name, 30)),
      h('dd', { title: text.length > 48 ? shorten(text, 600) : null }, h('bdi', {}, shorten(text, 48))));
  };
  const rest = fields.slice(most);
  return h('dl', { class: 'chips' }, fields.slice(0, most).map(chip), rest.length > 0 && h('div', { class: 'chip' },
    h('dt', {}, 'and'), h('dd', { title: rest.map(([name]) => name).join(', ') }, `${rest.length} more`)));
}
