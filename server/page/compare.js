// Two documents compared: how near, where their words and where their bits differ.

import * as api from './api.js';
import { bitsView } from './bits.js';
import { diffView } from './diff.js';
import { byId, h, put } from './dom.js';
import { count, fact, idText, likeness, measureName, similarity } from './format.js';
import { told } from './problem.js';
import { searchLink } from './routes.js';

const FEATURES_SHOWN = 12;

function facts({ bits, distance, similarity: alike, measure, features }) {
  return h('dl', { class: 'facts' },
    fact('Distance', h('span', { class: 'big' }, String(distance)), ` of ${bits} bits`),
    fact(`Similarity (${measureName(measure)})`, likeness(alike)),
    features && fact('Jaccard of features', h('span', { class: 'big' }, similarity(features.jaccard))),
    features && fact('Cosine of features', h('span', { class: 'big' }, similarity(features.cosine))),
    features && fact('Features', h('span', { class: 'number' }, `${count(features.shared)} shared, ${count(features.only_a)} only in A, ${count(features.only_b)} only in B`)));
}

function featuresView({ differences }) {
  if (differences.length === 0) return null;
  const weight = (value) => h('td', { class: value === 0 ? 'number none' : 'number' }, value === 0 ? '–' : String(Number(value.toFixed(3))));
  const row = ({ feature, a, b }) => h('tr', { class: a > b ? 'more-a' : 'more-b' },
    h('td', { class: 'mono feature' }, h('bdi', {}, feature)), weight(a), weight(b));
  const table = (list) => h('table', {},
    h('thead', {}, h('tr', {}, h('th', { scope: 'col' }, 'Feature'), h('th', { scope: 'col', class: 'number' }, 'A'), h('th', { scope: 'col', class: 'number' }, 'B'))),
    h('tbody', {}, list.map(row)));
  const rest = differences.slice(FEATURES_SHOWN);
  return h('section', { class: 'card', 'aria-labelledby': 'features-title' },
    h('h2', { id: 'features-title' }, 'Features that differ most'),
    table(differences.slice(0, FEATURES_SHOWN)),
    rest.length > 0 && h('details', {}, h('summary', {}, `${count(rest.length)} more`), table(rest)));
}

function textsView(comparison, names, stats) {
  if (!comparison.diff) return h('div', { class: 'note', id: 'no-diff' }, h('p', {}, h('strong', {}, 'The texts cannot be shown.')), h('p', {}, noDiff(names, stats, comparison)));
  const same = comparison.diff.every((part) => part.side === 'both');
  return h('section', { class: 'card texts', 'aria-labelledby': 'texts-title' },
    h('div', { class: 'card-head' }, h('h2', { id: 'texts-title' }, 'The texts'),
      same ? h('p', { class: 'hint' }, 'They are the same, word by word.')
        : h('p', { class: 'hint' }, h('del', {}, 'only in A'), ' ', h('ins', {}, 'only in B'))),
    diffView(comparison.diff, names));
}

function noDiff(names, stats, comparison) {
  if (comparison.a.text !== undefined && comparison.b.text !== undefined) return 'The texts are too long to be compared word by word.';
  if (stats.keeps?.texts === false) return 'This collection keeps no texts (create --keep-text does), only signatures: the bits are all there is to compare.';
  return 'One of the two was given as a signature, or its text was not kept: the bits are all there is to compare.';
}

/** What the service is asked to compare, and how it is called. */
function side(id, query) {
  if (id !== '') return { asked: { id }, name: () => h('a', { class: 'mono', href: searchLink(id) }, idText(id)) };
  if (!query) return null;
  return query.id === undefined
    ? { asked: query, name: () => h('span', {}, query.text === undefined ? 'the signature that you searched with' : 'the text that you searched with') }
    : side(query.id, null);
}

export function createComparison(app, close) {
  const body = byId('comparison-body');
  const line = byId('comparison-line');
  let underWay = null;
  let shown = null;

  async function compare(a, b) {
    const sides = { a: side(a, app.query), b: side(b, app.query) };
    if (!sides.a || !sides.b) {
      put(body, h('div', { class: 'note' }, h('p', {}, h('strong', {}, 'The text of this comparison is gone.')),
        h('p', {}, 'A link cannot hold it. ', h('a', { href: '#search' }, 'Search'), ' with it again, and open the comparison from its hit.')));
      return;
    }
    underWay?.abort();
    underWay = new AbortController();
    const { signal } = underWay;
    const place = h('div', {});
    line.classList.remove('hidden');
    put(line, 'Comparing …');
    put(body, place);
    const answer = await told(place, () => api.compare(sides.a.asked, sides.b.asked, signal).then(show));
    if (answer === null && !signal.aborted) put(line);
    line.classList.add('hidden');

    function show(comparison) {
      const names = { a: sides.a.name, b: sides.b.name };
      put(body,
        h('p', { class: 'pair' }, h('span', { class: 'letter' }, 'A'), names.a(), h('span', { class: 'letter' }, 'B'), names.b()),
        facts(comparison), textsView(comparison, names, app.stats),
        h('div', { class: 'columns pair-of-cards' }, bitsView(comparison), comparison.features && featuresView(comparison.features)));
      put(line, `${comparison.distance} of ${comparison.bits} bits differ.`);
      return comparison;
    }
  }

  byId('comparison-close').addEventListener('click', close);
  return {
    show(a, b) {
      const asked = JSON.stringify([a, b, a === '' || b === '' ? app.query : null]);
      if (asked === shown) return;
      shown = asked;
      compare(a, b);
    },
    hide() {
      underWay?.abort();
      shown = null;
    },
  };
}
