// What is shown in place of an empty collection: how to fill it.

import { addForm, sampleLoader, takesDocuments } from './add.js';
import { hasToken } from './api.js';
import { h, put } from './dom.js';

const SHELL_SAFE = /^[\w./-]+$/;

const quoted = (word) => (SHELL_SAFE.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const command = (...lines) => h('pre', { class: 'command', tabindex: '0' }, h('code', {}, lines.join('\n')));

/** While a service writes to SQLite, nobody else does. */
function commandLine({ name, recipe, store, read_only: readOnly }) {
  const collection = quoted(name ?? 'COLLECTION');
  const what = recipe === null ? 'A JSON object a line, with an id and a signature.' : 'A JSON object a line, with an id and a text; what else is in it becomes the payload.';
  return [h('h2', {}, 'From the command line'),
    command(`lookalike add ${collection} ${recipe === null ? 'signatures.jsonl' : 'documents.jsonl'}`),
    h('p', { class: 'hint' }, store === 'sqlite' && !readOnly ? `While this service is stopped: two cannot write at a time. ${what}` : what)];
}

function curl({ recipe, bits }) {
  const document = recipe === null
    ? { id: 'a1', signature: '0123456789abcdef'.repeat(Math.ceil(bits / 64)).slice(0, Math.ceil(bits / 4)) }
    : { id: 'a1', text: 'The harbour of Wenneby reopened on Monday after a storm', payload: { source: 'harbour.example' } };
  const url = `${window.location.origin}/v1/documents`;
  const token = hasToken() ? ["  -H 'Authorization: Bearer TOKEN' \\"] : [];
  return [h('h2', {}, 'With HTTP'),
    command(`curl ${url} \\`, ...token, "  -H 'Content-Type: application/json' \\", `  -d '${JSON.stringify(document)}'`),
    h('p', { class: 'hint' }, 'Many at a time, such an object a line:'),
    command(`curl ${url} \\`, ...token, "  -H 'Content-Type: application/x-ndjson' \\", '  -X POST -T documents.jsonl')];
}

/** The ways to fill an empty collection; none if this service only reads. */
export function waysToFill(app) {
  const { stats } = app;
  if (!takesDocuments(stats)) {
    return [h('div', { class: 'card' }, h('p', {}, 'This service only reads, so nothing can be added here.'), commandLine(stats))];
  }
  const sample = stats.recipe !== null && h('div', { class: 'card sample-card' },
    h('h2', {}, 'Try it with a sample'),
    h('p', {}, 'Pages of a handbook in several versions: many of them look alike.'),
    sampleLoader(app));
  return [sample, h('div', { class: 'columns even' },
    h('div', { class: 'card' }, curl(stats), commandLine(stats)),
    h('div', { class: 'card' }, h('h2', {}, 'By hand'), addForm(app)))].filter(Boolean);
}

export function createEmpty(app, element) {
  return {
    show() {
      put(element, h('h1', { id: 'empty-title', tabindex: '-1' }, 'This collection is empty'),
        h('p', { class: 'lead' }, 'Fill it, and what looks alike can be found.'), ...waysToFill(app));
    },
    hide() {
      put(element);
    },
  };
}
