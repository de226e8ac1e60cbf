// The list of clusters, and which of them are suspicious.

import * as api from './api.js';
import { byId, chosen, debounced, h, put } from './dom.js';
import { count, counted, idText, likeness, milliseconds, radiusMeaning, similarity, similarityOf } from './format.js';
import { told } from './problem.js';
import { clusterLink } from './routes.js';

const PAGE = 50;
const LONG_CHAIN = 3;
const MUCH_LESS = 0.1;

/** Why two members of a cluster may have nothing to do with each other; null if they do not look so. */
export function suspicion(cluster, radius, stats) {
  if (cluster.longest_chain >= LONG_CHAIN) return `some are linked only by a chain of ${cluster.longest_chain} steps`;
  if (cluster.min_similarity < similarityOf(radius, stats) - MUCH_LESS) return `two of them are only ${similarity(cluster.min_similarity)} alike`;
  return null;
}

function clusterItem(cluster, radius, stats) {
  const why = suspicion(cluster, radius, stats);
  return h('li', { class: 'cluster', 'data-id': cluster.id, 'data-size': cluster.size },
    h('span', { class: 'size number', title: 'Documents' }, count(cluster.size), h('span', { class: 'hidden' }, ' documents')),
    h('div', { class: 'cluster-what' },
      h('a', { class: 'cluster-link mono', href: clusterLink(cluster.id, radius, stats.radius) }, idText(cluster.id)),
      why && h('p', { class: 'suspicious' }, `Suspicious: ${why}`)),
    h('div', { class: 'cluster-parts' },
      h('span', {}, `${count(cluster.distinct)} distinct`),
      h('span', {}, cluster.longest_chain === 0 ? 'no chain' : `chain of ${counted(cluster.longest_chain, 'step')}`),
      h('span', { title: 'Bits between the two that are farthest apart' }, `farthest ${cluster.farthest}`)),
    likeness(cluster.min_similarity));
}

export function createClusters(app) {
  const slider = byId('clusters-radius');
  const list = byId('cluster-list');
  const more = byId('clusters-more');
  const problem = byId('clusters-problem');
  let underWay = null;
  let shown = null;

  const radius = () => Number(slider.value);
  const meaning = () => put(byId('clusters-radius-meaning'), radiusMeaning(radius(), app.stats));

  function line(answer) {
    if (answer.clusters === 0) return `No two documents are within ${answer.radius} bits of each other.`;
    return `${counted(answer.clusters, 'cluster')} of ${counted(answer.clustered, 'document')} among ${counted(answer.records, 'record')}, ${answer.exact ? 'exact' : 'not exact'}, in ${milliseconds(answer.took_ms)}`;
  }

  async function load(offset) {
    underWay?.abort();
    underWay = new AbortController();
    const { signal } = underWay;
    const asked = radius();
    list.setAttribute('aria-busy', 'true');
    if (list.childElementCount === 0) put(byId('clusters-line'), 'Looking for clusters …');
    const answer = await told(problem, () => api.clusters({ radius: asked, order: chosen('order'), offset, limit: PAGE }, signal).then(show));
    if (signal.aborted) return;
    list.removeAttribute('aria-busy');
    if (answer === null) shown = null;

    function show(found) {
      const items = found.list.map((cluster) => clusterItem(cluster, asked, app.stats));
      if (offset === 0) put(list, items);
      else list.append(...items);
      put(byId('clusters-line'), line(found));
      more.hidden = offset + found.list.length >= found.clusters || found.list.length === 0;
      if (offset > 0) items[0]?.querySelector('a').focus();
      return found;
    }
  }

  /** Asks again only if something changed: the list stays as it was when one comes back to it. */
  function loadFirst() {
    const asked = JSON.stringify([radius(), chosen('order'), app.stats.position]);
    if (asked === shown) return;
    shown = asked;
    load(0);
  }

  const loadSoon = debounced(loadFirst);
  slider.max = Math.max(Math.floor(app.stats.bits / 4), app.stats.radius ?? 0);
  slider.value = app.stats.radius ?? 0;
  slider.addEventListener('input', () => {
    meaning();
    loadSoon();
  });
  document.querySelectorAll('[name="order"]').forEach((radio) => radio.addEventListener('change', loadFirst));
  more.addEventListener('click', () => load(list.childElementCount));
  meaning();
  return { show: loadFirst };
}
