// Adding documents from the page: one by hand, or the sample.

import * as api from './api.js';
import { h, put } from './dom.js';
import { count, counted, idText, shorten } from './format.js';
import { clearFields, problemBox, tellAtField } from './problem.js';

/** Whether this service takes documents at all. */
export const takesDocuments = (stats) => !stats.read_only && stats.writes !== null && stats.writes !== undefined;

const OUTCOMES = {
  added: ' was added.',
  replaced: ' was there, and is replaced.',
  skipped: ' is there already, and stays as it was.',
  unsigned: ' was not added: too few words for a signature.',
};

/** With the first documents the collection is there to be searched: the view changes, and tells what happened. */
function toSearch(app, news, id) {
  app.suggestion = { news, id };
  window.location.hash = '#search';
}

/** A document that has lookalikes, to start with. */
async function goodStart(app, ids) {
  const found = await api.clusters({ radius: app.stats.radius, limit: 1 }).catch(() => null);
  return found?.list[0]?.id ?? ids[0];
}

/** A form for one document; with a text, or with a signature where there is no recipe to make one. */
export function addForm(app) {
  const what = app.stats.recipe === null ? 'signature' : 'text';
  const outcome = h('div', { class: 'outcome', id: 'add-outcome', role: 'status' });
  const id = h('input', { id: 'add-id', type: 'text', class: 'mono', required: true, spellcheck: 'false', autocomplete: 'off', autocapitalize: 'off' });
  const text = h('textarea', { id: `add-${what}`, rows: what === 'text' ? 5 : 2, required: true, spellcheck: 'false', class: what === 'text' ? null : 'mono' });
  const button = h('button', { type: 'submit', id: 'add-button' }, 'Add it');

  async function add(event) {
    event?.preventDefault();
    clearFields(form);
    button.disabled = true;
    put(outcome, 'Adding …');
    try {
      const value = what === 'text' ? text.value : text.value.replace(/\s+/g, '').toLowerCase();
      const answer = await api.add({ id: id.value.trim(), [what]: value });
      const [{ id: name, outcome: said }] = answer.documents;
      put(outcome, h('strong', { class: 'mono' }, idText(name, 60)), OUTCOMES[said] ?? ` ${said}`);
      if (said === 'unsigned') return;
      form.reset();
      if (app.stats.records === 0) toSearch(app, `${shorten(name)} was added.`, null);
      await app.refresh();
    } catch (problem) {
      put(outcome);
      if (!tellAtField(form, problem)) put(outcome, problemBox(problem, add));
    } finally {
      button.disabled = false;
    }
  }

  const form = h('form', { id: 'add-form', class: 'add', on: { submit: add } },
    h('div', { class: 'field' }, h('label', { for: 'add-id' }, 'Id'), id, h('p', { class: 'field-problem', 'data-problem': 'id', hidden: true })),
    h('div', { class: 'field' }, h('label', { for: `add-${what}` }, what === 'text' ? 'Text' : 'Signature, hexadecimal'), text, h('p', { class: 'field-problem', 'data-problem': what, hidden: true })),
    h('div', { class: 'go' }, button, outcome));
  return form;
}

/** A button that adds the documents which come with the service. */
export function sampleLoader(app) {
  const state = h('div', { class: 'outcome', id: 'sample-state', role: 'status' });
  const bar = h('progress', { id: 'sample-progress', 'aria-label': 'Sample documents added', hidden: true });

  async function load() {
    button.disabled = true;
    bar.hidden = false;
    bar.removeAttribute('value');
    put(state, 'Fetching …');
    try {
      const lines = await api.sample();
      const ids = lines.split('\n').filter((line) => line.trim() !== '').map((line) => JSON.parse(line).id);
      let done = 0;
      let failed = 0;
      bar.max = ids.length;
      await api.addLines(lines, (said) => {
        if (said.error) failed += 1;
        else if (said.outcome) done += 1;
        bar.value = done + failed;
        put(state, `${count(done)} of ${counted(ids.length, 'document')}`);
      });
      const news = failed === 0 ? `${counted(done, 'sample document')} added.` : `${counted(done, 'sample document')} added; ${count(failed)} could not be.`;
      toSearch(app, news, await goodStart(app, ids));
      await app.refresh();
    } catch (problem) {
      put(state, problemBox(problem, load));
    } finally {
      bar.hidden = true;
      button.disabled = false;
    }
  }

  const button = h('button', { type: 'button', class: 'primary', id: 'load-sample', on: { click: load } }, 'Load the sample documents');
  return h('div', { class: 'sample' }, button, bar, state);
}
