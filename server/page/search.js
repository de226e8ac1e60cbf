// The search: what is asked for, and the hits.

import * as api from './api.js';
import { byId, chosen, debounced, h, put } from './dom.js';
import { chips, counted, idText, likeness, milliseconds, radiusMeaning } from './format.js';
import { clearFields, problemBox, tellAtField } from './problem.js';
import { clusterLink, compareLink, searchLink } from './routes.js';

const MOST_HITS = 100;

/** A page by its suffix: its markup is dropped by the service. */
const isHtml = (name) => /\.html?$/i.test(name);

function resultLine(answer) {
  if (answer.unsigned) return 'Too few words for a signature.';
  const hits = answer.hits.length === 0 ? 'No hits' : `${answer.more ? 'The nearest ' : ''}${counted(answer.hits.length, 'hit')}`;
  const sure = answer.exact || answer.expected_recall === undefined ? 'exact' : `expected recall ${answer.expected_recall.toFixed(2)}`;
  return `${hits} among ${counted(answer.records, 'record')}, ${sure}, by ${answer.index}, in ${milliseconds(answer.took_ms)}`;
}

function noHits(question, answer) {
  if (answer.unsigned) {
    return ['This text is too short to be compared.', 'A signature is made of runs of words: give a few sentences.'];
  }
  if (question.filter) return ['Nothing within reach passes the filter.', 'Widen the radius, or leave the filter out.'];
  if (question.radius === undefined) return ['There is nothing to find.', 'The collection has no other document.'];
  return ['Nothing looks like it within this radius.', 'Move the radius to the right, or ask for the nearest to see how far away they are.'];
}

const note = ([head, text]) => h('div', { class: 'note' }, h('p', {}, h('strong', {}, head)), h('p', {}, text));

/** The hit's links; the one to the comparison is its name. */
function hitItem(hit, from, radius) {
  return h('li', { class: 'hit', 'data-id': hit.id, 'data-distance': hit.distance },
    h('a', { class: 'hit-link mono', href: compareLink(from, hit.id) }, idText(hit.id)),
    h('div', { class: 'hit-how' },
      h('span', { class: 'distance', title: 'Bits that differ' }, h('span', { class: 'number' }, String(hit.distance)), hit.distance === 1 ? ' bit' : ' bits'),
      likeness(hit.similarity)),
    chips(hit.payload),
    h('div', { class: 'hit-links' },
      h('a', { class: 'compare', href: compareLink(from, hit.id) }, 'Compare'),
      h('a', { href: searchLink(hit.id) }, 'Its lookalikes'),
      h('a', { href: clusterLink(hit.id, radius, radius) }, 'Its cluster')));
}

/** What is searched with, as the service wants it; a problem if there is nothing. */
function subject(by) {
  const value = byId(`query-${by}`).value;
  if (value.trim() === '') {
    const wanted = { text: 'Give a text to search with.', id: 'Give the id of a document.', signature: 'Give a signature.' };
    throw new api.Problem({ status: 422, detail: wanted[by], field: by });
  }
  if (by === 'text') return { text: value, ...(byId('query-html').checked && { media: 'html' }) };
  return by === 'id' ? { id: value.trim() } : { signature: value.replace(/\s+/g, '').toLowerCase() };
}

function readQuestion(limit) {
  const filter = byId('filter').value.trim();
  return {
    ...subject(chosen('by')),
    ...(chosen('question') === 'radius' ? { radius: Number(byId('radius').value), limit } : { nearest: Number(byId('nearest').value) }),
    ...(filter !== '' && { filter }),
  };
}

/** Reads a file that was chosen or dropped into the text. */
async function takeFile(file, limits) {
  const hint = byId('query-text-hint');
  if (limits?.text_bytes && file.size > limits.text_bytes) {
    throw new api.Problem({ status: 413, detail: `${file.name} is larger than this service takes.`, field: 'text' });
  }
  byId('query-text').value = await file.text();
  byId('query-html').checked = isHtml(file.name);
  put(hint, h('bdi', {}, file.name));
}

function acceptFiles(take) {
  const place = byId('drop');
  const carriesFile = (event) => event.dataTransfer?.types.includes('Files');
  place.addEventListener('dragover', (event) => {
    if (!carriesFile(event)) return;
    event.preventDefault();
    place.classList.add('over');
  });
  place.addEventListener('dragleave', (event) => {
    if (!place.contains(event.relatedTarget)) place.classList.remove('over');
  });
  place.addEventListener('drop', (event) => {
    if (!carriesFile(event)) return;
    event.preventDefault();
    place.classList.remove('over');
    take(event.dataTransfer.files[0]);
  });
  byId('query-file').addEventListener('change', (event) => {
    if (event.target.files[0]) take(event.target.files[0]);
    event.target.value = '';
  });
}

/** Up and down go through the hits. */
function walkHits(event) {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step || !event.target.classList.contains('hit-link')) return;
  const links = [...byId('hits').querySelectorAll('.hit-link')];
  const next = links[links.indexOf(event.target) + step];
  if (!next) return;
  event.preventDefault();
  next.focus();
}

export function createSearch(app) {
  const form = byId('search-form');
  let underWay = null;
  let answered = false;
  let limit = MOST_HITS;
  let shownId = null;

  function showChoices() {
    ['text', 'id', 'signature'].forEach((by) => { byId(`by-${by}`).hidden = chosen('by') !== by; });
    ['radius', 'nearest'].forEach((question) => { byId(`question-${question}`).hidden = chosen('question') !== question; });
    put(byId('radius-meaning'), radiusMeaning(Number(byId('radius').value), app.stats));
    const nearest = Number(byId('nearest').value);
    put(byId('nearest-meaning'), nearest === 1 ? 'the nearest document' : `the ${nearest} nearest documents`);
  }

  function tell(problem) {
    put(byId('result-line'));
    put(byId('hits'));
    put(byId('hits-more'));
    if (!tellAtField(form, problem)) put(byId('search-problem'), problemBox(problem, ask));
  }

  function showHits(question, answer) {
    const { stats } = app;
    put(byId('result-line'), resultLine(answer));
    put(byId('hits'), answer.hits.map((hit) => hitItem(hit, question.id, stats.radius)));
    put(byId('search-problem'), answer.hits.length === 0 && note(noHits(question, answer)));
    put(byId('hits-more'), answer.more && h('button', { type: 'button', id: 'more-hits', on: { click: () => { limit *= 5; ask(); } } }, 'More hits'));
  }

  async function ask() {
    const isNew = !answered;
    again.cancel();
    underWay?.abort();
    underWay = new AbortController();
    const { signal } = underWay;
    const results = byId('hits');
    clearFields(form);
    put(byId('suggestion'));
    put(byId('search-problem'));
    if (!answered) put(byId('result-line'), 'Searching …');
    try {
      const question = readQuestion(limit);
      results.setAttribute('aria-busy', 'true');
      const answer = await api.search(question, signal);
      const { id, text, media, signature } = question;
      app.query = { id, text, media, signature };
      answered = true;
      showHits(question, answer);
      if (isNew && byId('result-line').getBoundingClientRect().top > window.innerHeight * 0.7) byId('result-line').scrollIntoView();
    } catch (problem) {
      if (problem.name === 'AbortError') return;
      tell(problem);
    }
    results.removeAttribute('aria-busy');
  }

  const again = debounced(() => { if (answered) ask(); });

  function askAnew() {
    limit = MOST_HITS;
    answered = false;
    ask();
  }

  /** What is asked in the form is no longer what the address says. */
  function submit() {
    shownId = null;
    history.replaceState(history.state, '', '#search');
    askAnew();
  }

  function searchById(id) {
    form.querySelector('[name="by"][value="id"]').checked = true;
    byId('query-id').value = id;
    showChoices();
    askAnew();
  }

  function suggest() {
    if (app.suggestion === null) return;
    const { news, id } = app.suggestion;
    app.suggestion = null;
    put(byId('suggestion'), h('div', { class: 'note good' }, h('p', {}, h('strong', {}, news)), id === null
      ? h('p', {}, 'Add more in the ', h('a', { href: '#collection' }, 'collection'), ', or search for what looks like it.')
      : h('p', {}, 'Try: search by id ', h('a', { id: 'suggested', class: 'mono', href: searchLink(id) }, idText(id)), ', or see the ', h('a', { href: '#clusters' }, 'clusters'), '.')));
  }

  /** Signatures from elsewhere: there is no recipe to make one of a text. */
  function withoutTexts() {
    form.querySelector('[data-by="text"]').hidden = true;
    form.querySelector('[name="by"][value="id"]').checked = true;
  }

  const radius = byId('radius');
  radius.max = Math.max(Math.floor(app.stats.bits / 4), app.stats.radius ?? 0);
  radius.value = app.stats.radius ?? 0;
  put(byId('query-signature-hint'), `${Math.ceil(app.stats.bits / 4)} digits for ${app.stats.bits} bits`);
  if (/Mac|iP(hone|ad)/.test(navigator.platform)) put(byId('search-keys'), '⌘ Enter');
  if (app.stats.recipe === null) withoutTexts();
  showChoices();
  put(byId('result-line'), h('span', { class: 'quiet-text' }, 'What looks like it will be listed here, the nearest first.'));

  form.addEventListener('submit', (event) => {
    event.preventDefault();
    submit();
  });
  form.addEventListener('keydown', (event) => {
    if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    submit();
  });
  form.addEventListener('input', (event) => {
    showChoices();
    if (event.target === radius || event.target.id === 'nearest' || event.target.name === 'question') again();
    if (event.target.id === 'query-text') put(byId('query-text-hint'));
  });
  byId('hits').addEventListener('keydown', walkHits);
  acceptFiles((file) => takeFile(file, app.stats.limits).then(() => clearFields(form), tell));

  return {
    show(id) {
      suggest();
      if (id && id !== shownId) searchById(id);
      shownId = id ?? null;
    },
  };
}
