// Starts the page: which view is shown, and what all of them share.

import * as api from './api.js';
import { createCluster } from './cluster.js';
import { createClusters } from './clusters.js';
import { createCollection } from './collection.js';
import { createComparison } from './compare.js';
import { byId, h, put } from './dom.js';
import { createEmpty } from './empty.js';
import { counted } from './format.js';
import { problemBox, progressBar } from './problem.js';
import { route } from './routes.js';
import { createSearch } from './search.js';

const TITLES = {
  search: 'Search', comparison: 'Comparison', clusters: 'Clusters', cluster: 'Cluster', collection: 'Collection', empty: 'Fill the collection',
};

/** What the views share: the state of the collection, and what was last searched with. */
const app = {
  stats: null,
  query: null,
  suggestion: null,
  /** Takes over what the service says of the collection, and shows another view if it is no longer empty. */
  takeStats(stats) {
    const wasEmpty = app.stats?.records === 0;
    app.stats = stats;
    put(byId('about'), h('bdi', { class: 'name' }, stats.name ?? ''), ' ',
      h('span', { class: 'number', title: `${stats.bits} bits each` }, counted(stats.records, 'record')),
      stats.read_only && h('span', { class: 'badge' }, 'read only'));
    if (wasEmpty && stats.records > 0) show();
  },
  async refresh() {
    app.takeStats(await api.stats());
  },
};

let views;
let current = null;
/** Where the focus and the page were at each entry of the history, for coming back to it. */
const left = new Map();

const isEmpty = (view) => app.stats.records === 0 && view !== 'collection';

/** Numbers the entries of the history, so that closing a view knows whether there is one to go back to. */
function numberEntry() {
  if (history.state?.depth === undefined) {
    const depth = current === null ? 0 : current.depth + 1;
    history.replaceState({ depth }, '');
    left.delete(depth);
  }
  return history.state.depth;
}

function mark(view) {
  const of = { comparison: null, cluster: 'clusters' };
  const tab = view in of ? of[view] : view;
  document.querySelectorAll('nav [data-view]').forEach((link) => {
    if (link.dataset.view === tab) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  });
}

function leave() {
  if (current === null) return;
  left.set(current.depth, { focus: document.activeElement, scroll: window.scrollY });
  views[current.view].hide?.();
}

/** Back to where the user was in this view, otherwise to its heading. */
function arrive({ view, depth }, first) {
  const was = left.get(depth);
  window.scrollTo(0, was?.scroll ?? 0);
  if (first) return;
  const again = was?.focus?.isConnected && byId(view).contains(was.focus) ? was.focus : byId(`${view}-title`);
  again?.focus({ preventScroll: true });
}

function show() {
  const asked = route(window.location.hash);
  const view = isEmpty(asked.view) ? 'empty' : asked.view;
  const first = current === null;
  leave();
  current = { view, depth: numberEntry() };
  Object.keys(views).forEach((name) => { byId(name).hidden = name !== view; });
  mark(asked.view);
  document.title = `${TITLES[view]} · ${app.stats.name ?? 'lookalike'}`;
  views[view].show(...asked.parts);
  arrive(current, first);
}

/** Closes what covers another view: back if there is a way, otherwise to the search. */
function close() {
  if (history.state?.depth > 0) history.back();
  else window.location.hash = '#search';
}

async function start() {
  const place = byId('start');
  put(place, 'Loading …');
  try {
    await app.refresh();
  } catch (problem) {
    put(place, problemBox(problem, start));
    return;
  }
  place.hidden = true;
  views = {
    search: createSearch(app),
    comparison: createComparison(app, close),
    clusters: createClusters(app),
    cluster: createCluster(app),
    collection: createCollection(app),
    empty: createEmpty(app, byId('empty')),
  };
  window.addEventListener('hashchange', show);
  show();
}

byId('skip').addEventListener('click', (event) => {
  event.preventDefault();
  byId('content').focus();
});
document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape' && current?.view === 'comparison') close();
});
api.watchProgress(progressBar());
start();
