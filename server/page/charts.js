// Small charts, drawn as SVG.

import { h, roving, svg } from './dom.js';
import { count, counted } from './format.js';

const WIDTH = 560;
const HEIGHT = 150;
const FOOT = 20;

const ticks = (most) => [...new Set([0, 0.25, 0.5, 0.75, 1].map((share) => Math.round(share * most)))];

/** How many pairs there are at each distance: bars that tell their number on hover and focus. */
export function histogram(pairs) {
  const most = Math.max(1, ...pairs);
  const wide = WIDTH / pairs.length;
  const gap = Math.min(2, wide / 4);
  const told = h('p', { class: 'chart-told number' });
  const sum = pairs.reduce((all, one) => all + one, 0);
  const tell = (place) => {
    told.textContent = place === null ? `${counted(sum, 'pair')} in all` : `${counted(pairs[place], 'pair')} at a distance of ${place}`;
  };
  const bars = pairs.map((value, place) => {
    const tall = value === 0 ? 0 : Math.max(2, (value / most) * (HEIGHT - 6));
    const bar = svg('g', { class: 'column', role: 'img', 'aria-label': `${counted(value, 'pair')} at a distance of ${place}` },
      svg('rect', { class: 'column-reach', x: place * wide, y: 0, width: wide, height: HEIGHT }),
      svg('rect', { class: 'column-bar', x: place * wide + gap / 2, y: HEIGHT - tall, width: Math.max(0.5, wide - gap), height: tall, rx: Math.min(2, wide / 4) }));
    ['pointerenter', 'focus'].forEach((event) => bar.addEventListener(event, () => tell(place)));
    ['pointerleave', 'blur'].forEach((event) => bar.addEventListener(event, () => tell(null)));
    return bar;
  });
  const labels = ticks(pairs.length - 1).map((place) => svg('text', {
    class: 'tick', x: (place + 0.5) * wide, y: HEIGHT + 15,
    'text-anchor': pairs.length > 1 && place === 0 ? 'start' : place === pairs.length - 1 && place > 0 ? 'end' : 'middle',
  }, String(place)));
  const chart = svg('svg', { class: 'histogram', viewBox: `0 0 ${WIDTH} ${HEIGHT + FOOT}`, role: 'group', 'aria-label': 'Pairs by distance. Arrow keys go from bar to bar.' },
    svg('line', { class: 'axis', x1: 0, x2: WIDTH, y1: HEIGHT + 0.5, y2: HEIGHT + 0.5 }), bars, labels);
  roving(chart, bars);
  tell(null);
  const rows = pairs.flatMap((value, place) => (value > 0 ? [h('tr', {}, h('td', { class: 'number' }, String(place)), h('td', { class: 'number' }, count(value)))] : []));
  return [told, chart, h('details', { id: 'histogram-table' }, h('summary', {}, 'As a table'),
    h('table', {}, h('thead', {}, h('tr', {}, ['Distance', 'Pairs'].map((name) => h('th', { scope: 'col', class: 'number' }, name)))), h('tbody', {}, rows)))];
}

/** The last rates as a line; the newest is at the right. */
export function sparkline(rates, places) {
  const [width, height] = [280, 56];
  const most = Math.max(1, ...rates);
  const x = (place) => width - 3 - (rates.length - 1 - place) * ((width - 6) / (places - 1));
  const y = (rate) => height - 4 - (rate / most) * (height - 8);
  const line = rates.map((rate, place) => `${x(place).toFixed(1)},${y(rate).toFixed(1)}`).join(' ');
  return svg('svg', { class: 'sparkline', viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true' },
    svg('line', { class: 'axis', x1: 0, x2: width, y1: height - 3.5, y2: height - 3.5 }),
    rates.length > 1 && svg('polygon', { class: 'under-line', points: `${x(0).toFixed(1)},${height - 4} ${line} ${x(rates.length - 1)},${height - 4}` }),
    svg('polyline', { class: 'line', points: line }),
    rates.length > 0 && svg('circle', { class: 'newest', cx: x(rates.length - 1), cy: y(rates.at(-1)), r: 2.5 }));
}
