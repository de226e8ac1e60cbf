// The collection: counts, sizes, rates, and what its planner says.

import { addForm, takesDocuments } from './add.js';
import * as api from './api.js';
import { histogram, sparkline } from './charts.js';
import { byId, debounced, h, put } from './dom.js';
import { waysToFill } from './empty.js';
import { bytes, count, perSecond, radiusMeaning, seconds, sentence } from './format.js';
import { problemBox, told } from './problem.js';

const EVERY = 2000;
const KEPT = 60;

const tile = (name, value, more) => h('div', { class: 'tile' }, h('dt', {}, name), h('dd', {}, h('span', { class: 'big' }, value), more && h('span', { class: 'more' }, more)));

function tiles(stats) {
  return [
    tile('Records', count(stats.records)),
    tile('Distinct signatures', Number.isInteger(stats.distinct) ? count(stats.distinct) : '–'),
    tile('Removed', count(stats.removed)),
    tile('Bits', count(stats.bits), stats.measure),
    tile('Recipe', stats.recipe === null ? 'none' : stats.recipe_name || 'own', stats.recipe === null ? 'signatures from elsewhere' : null),
    tile('Store', bytes(stats.store_bytes ?? 0), stats.store),
    tile('Index', bytes(stats.index_bytes ?? 0), stats.index),
    tile('Up for', seconds(stats.uptime_s), stats.version && `version ${stats.version}`),
  ];
}

/** A table of numbers and words: columns are a name, a way to show it, and whether it is a number. */
function table(columns, rows) {
  const kind = (isNumber) => ({ class: isNumber ? 'number' : null });
  return h('div', { class: 'wide', tabindex: '0', role: 'group', 'aria-label': 'Table' }, h('table', {},
    h('thead', {}, h('tr', {}, columns.map(([name, , isNumber]) => h('th', { scope: 'col', ...kind(isNumber) }, name)))),
    h('tbody', {}, rows.map((row) => h('tr', {}, columns.map(([, show, isNumber]) => h('td', kind(isNumber), show(row))))))));
}

const mono = (text) => h('span', { class: 'mono' }, text);

const partsTable = (parts, bits) => table([
  ['Index', (part) => mono(part.index)],
  ['Rows', (part) => count(part.rows), true],
  ['Removed', (part) => count(part.removed), true],
  ['Size', (part) => bytes(part.bytes), true],
  ['Exact within', (part) => (part.exact_within === null ? 'finds most' : part.exact_within >= bits ? 'any radius' : `${part.exact_within} bits`), true],
  ['Saved', (part) => (part.saved ? 'yes' : 'in memory')],
], parts);

function planView(plan) {
  const [cheapest] = plan.plans;
  const name = (one) => [mono(one.index), one.index === plan.answers_by && h('span', { class: 'badge accent' }, 'answers')];
  return [
    h('p', { class: 'chosen' }, `For ${plan.asked}: `, h('strong', { class: 'mono' }, plan.answers_by), cheapest && cheapest.index === plan.answers_by && h('span', { class: 'number' }, `, about ${seconds(cheapest.query_seconds)} a query`), '.'),
    h('p', {}, `${sentence(plan.why)} Its index setting is “${plan.kept}”.`),
    table([
      ['Index', name],
      ['A query', (one) => seconds(one.query_seconds), true],
      ['Size', (one) => bytes(one.bytes), true],
      ['To build', (one) => seconds(one.build_seconds), true],
      ['Finds', (one) => (one.exact ? 'all' : `about ${(one.expected_recall * 100).toFixed(1)}%`), true],
      ['How', (one) => h('span', { class: 'how' }, one.explanation)],
    ], plan.plans),
  ];
}

function recipeView(stats) {
  const json = (value) => h('pre', { class: 'json', tabindex: '0' }, JSON.stringify(value, null, 2));
  const kept = [stats.keeps?.texts && 'texts', stats.keeps?.margins && 'margins'].filter(Boolean);
  return [
    h('p', {}, kept.length > 0 ? `Kept beside the signatures: ${kept.join(' and ')}.` : 'Neither texts nor margins are kept.', stats.created && ` Made on ${stats.created.slice(0, 10)}.`),
    stats.recipe !== null && h('details', { id: 'recipe-json' }, h('summary', {}, 'Recipe'), json(stats.recipe)),
    h('details', {}, h('summary', {}, 'Limits of the service'), json(stats.limits)),
  ];
}

/** The rates of the last two minutes, from how the number of documents grew. */
function rateWatch(place) {
  const rates = [];
  let before = null;
  return (stats) => {
    const now = { at: performance.now(), documents: stats.writes?.documents ?? 0 };
    if (before !== null) {
      rates.push(Math.max(0, (now.documents - before.documents) / ((now.at - before.at) / 1000)));
      if (rates.length > KEPT) rates.shift();
    }
    before = now;
    put(place, h('p', { class: 'rate' }, h('span', { class: 'big' }, perSecond(rates.at(-1) ?? 0)), ' a second'),
      sparkline(rates, KEPT),
      h('p', { class: 'hint' }, `${count(now.documents)} since it started; searches: ${perSecond(stats.searches?.per_second ?? 0)} a second.`));
  };
}

export function createCollection(app) {
  const slider = byId('collection-radius');
  const rate = rateWatch(byId('rate'));
  let underWay = null;
  let poll = null;
  let asked = null;
  let formFor = null;

  const radius = () => Number(slider.value);
  const meaning = () => put(byId('collection-radius-meaning'), radiusMeaning(radius(), app.stats));

  /** The histogram and the plan are worked out again for another radius or visit, not with every poll: they are dear. */
  async function loadByRadius() {
    const question = JSON.stringify([radius(), app.stats.position]);
    if (question === asked || app.stats.records === 0) return;
    asked = question;
    underWay?.abort();
    underWay = new AbortController();
    const { signal } = underWay;
    const given = radius();
    const both = [['histogram', () => api.clusters({ radius: given, limit: 1 }, signal).then(({ pairs_by_distance: pairs }) => histogram(pairs))],
      ['plan', () => api.plan({ radius: given, batch: 1 }, signal).then(planView)]];
    await Promise.all(both.map(async ([id, ask]) => {
      const place = byId(id);
      if (place.childElementCount === 0) put(place, h('p', { class: 'hint' }, 'Working it out …'));
      const problem = h('div', {});
      const done = await told(problem, () => ask().then((content) => { put(place, content); return true; }));
      if (done === null && !signal.aborted) {
        asked = null;
        put(place, problem);
      }
    }));
  }

  function showStats() {
    const { stats } = app;
    const isEmpty = stats.records === 0;
    put(byId('tiles'), tiles(stats));
    put(byId('parts'), stats.parts.length > 0 ? partsTable(stats.parts, stats.bits) : h('p', { class: 'hint' }, 'There are none yet.'));
    rate(stats);
    ['histogram', 'plan', 'parts'].forEach((id) => { byId(id).closest('.card').hidden = isEmpty; });
    byId('rate').closest('.card').hidden = !takesDocuments(stats);
    byId('add-card').hidden = isEmpty || !takesDocuments(stats);
    if (formFor !== isEmpty) {
      formFor = isEmpty;
      put(byId('collection-empty'), isEmpty && [h('p', { class: 'lead' }, 'It is empty: fill it, and what looks alike can be found.'), ...waysToFill(app)]);
      put(byId('add'), !isEmpty && addForm(app));
    }
  }

  async function again(signal) {
    const problem = byId('collection-problem');
    try {
      if (!document.hidden) {
        app.takeStats(await api.statsQuietly(signal));
        put(problem);
        showStats();
      }
    } catch (error) {
      if (error.name === 'AbortError') return;
      put(problem, problemBox(error, () => again(signal)));
      if (error.status === 401 || error.status === 403) return;
    }
    if (!signal.aborted) poll.timer = setTimeout(() => again(signal), EVERY);
  }

  const loadSoon = debounced(loadByRadius);
  slider.max = Math.max(Math.floor(app.stats.bits / 4), app.stats.radius ?? 0);
  slider.value = app.stats.radius ?? 0;
  slider.addEventListener('input', () => {
    meaning();
    loadSoon();
  });
  meaning();
  put(byId('recipe'), recipeView(app.stats));

  return {
    show() {
      put(byId('collection-title'), 'Collection ', h('bdi', { class: 'mono' }, app.stats.name ?? ''));
      showStats();
      loadByRadius();
      poll = { stop: new AbortController() };
      poll.timer = setTimeout(() => again(poll.stop.signal), EVERY);
    },
    hide() {
      clearTimeout(poll?.timer);
      poll?.stop.abort();
    },
  };
}
