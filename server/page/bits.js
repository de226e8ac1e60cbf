// A picture of two signatures: which bits differ, and how weak they are.

import { h, svg } from './dom.js';
import { count } from './format.js';

const ACROSS = 32;
const CELL = 14;
const GAP = 5;
const LEFT = 40;

/** Bit 0 is the most significant one of the first digit. */
const bitOf = (signature, bit) => (Number.parseInt(signature[bit >> 2], 16) >> (3 - (bit & 3))) & 1;

const x = (bit) => LEFT + (bit % ACROSS) * CELL + Math.floor((bit % ACROSS) / 8) * GAP;
const y = (bit) => Math.floor(bit / ACROSS) * CELL;

const marginsOf = (differing) => [differing.margin_a, differing.margin_b].filter((margin) => typeof margin === 'number');

function title(bit, signature, differing) {
  if (!differing) return `bit ${bit}: ${bitOf(signature, bit)} in both`;
  const margin = (name, value) => (typeof value === 'number' ? `, margin ${name} ${value}` : '');
  return `bit ${bit}: A ${differing.a}, B ${differing.b}${margin('A', differing.margin_a)}${margin('B', differing.margin_b)}`;
}

/** A bit that differs although both were sure of it is the largest; one that was a toss-up the smallest. */
function square(bit, signature, differing) {
  const margins = differing ? marginsOf(differing) : [];
  const sure = margins.length > 0 ? Math.sqrt(Math.max(...margins) / 255) : 1;
  const size = differing ? 7 + 5 * sure : bitOf(signature, bit) ? 5 : 3;
  const middle = (CELL - size) / 2;
  return svg('rect', {
    class: differing ? 'bit differs' : 'bit', x: x(bit) + middle, y: y(bit) + middle, width: size, height: size,
    rx: differing ? 2 : 1, 'fill-opacity': differing ? 0.6 + 0.4 * sure : null,
  }, svg('title', {}, title(bit, signature, differing)));
}

function grid({ bits, distance, a, differing }) {
  const by = new Map(differing.map((one) => [one.bit, one]));
  const height = Math.ceil(bits / ACROSS) * CELL;
  const width = x(Math.min(bits, ACROSS) - 1) + CELL;
  const places = Array.from({ length: bits }, (_, bit) => bit);
  const labels = places.filter((bit) => bit % ACROSS === 0);
  const picture = svg('svg', {
    class: 'bits', viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${distance} of ${bits} bits differ; the table below lists them`,
  }, labels.map((bit) => svg('text', { x: LEFT - 10, y: y(bit) + CELL / 2, class: 'bit-label' }, String(bit))),
  places.map((bit) => square(bit, a.signature, by.get(bit))));
  picture.style.maxWidth = `${width * 1.4}px`;
  return picture;
}

/** The signature's digits, those with a bit that differs marked. */
function digits(signature, differing) {
  const marked = new Set(differing.map((one) => one.bit >> 2));
  return [...signature].map((digit, place) => (marked.has(place) ? h('mark', {}, digit) : digit));
}

function table({ differing }) {
  const hasMargins = differing.some((one) => marginsOf(one).length > 0);
  const number = (value) => h('td', { class: 'number' }, typeof value === 'number' ? String(value) : '–');
  return h('details', { id: 'bits-table' }, h('summary', {}, `Bits that differ (${count(differing.length)})`),
    h('table', {},
      h('thead', {}, h('tr', {}, ['Bit', 'A', 'B', ...(hasMargins ? ['Margin A', 'Margin B'] : [])].map((name) => h('th', { scope: 'col', class: 'number' }, name)))),
      h('tbody', {}, differing.map((one) => h('tr', {}, [one.bit, one.a, one.b, ...(hasMargins ? [one.margin_a, one.margin_b] : [])].map(number))))));
}

/** All about the bits of a comparison. */
export function bitsView(comparison) {
  const { a, b, differing } = comparison;
  const hasMargins = differing.some((one) => marginsOf(one).length > 0);
  const legend = hasMargins ? 'Strong squares are bits that differ: the larger, the surer both documents were of them.' : 'Strong squares are bits that differ; of the others, the larger are 1.';
  return h('section', { class: 'card', 'aria-labelledby': 'bits-title' },
    h('h2', { id: 'bits-title' }, 'The bits'),
    grid(comparison),
    h('p', { class: 'hint' }, legend),
    h('dl', { class: 'signatures mono' },
      h('dt', {}, 'A'), h('dd', {}, digits(a.signature, differing)), h('dt', {}, 'B'), h('dd', {}, digits(b.signature, differing))),
    differing.length > 0 && table(comparison));
}
