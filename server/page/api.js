// Everything that the page asks the service, and how it is told of what went wrong.

const TOKEN = 'lookalike-token';

/** What the service refused, or that it could not be reached (status 0). */
export class Problem extends Error {
  constructor({ status, title, detail, field }, retryAfter = null) {
    super(detail || title || `The service answered with ${status}.`);
    this.status = status;
    this.title = title;
    this.field = field ?? null;
    this.retryAfter = retryAfter;
  }
}

export const setToken = (token) => sessionStorage.setItem(TOKEN, token);
export const hasToken = () => sessionStorage.getItem(TOKEN) !== null;

let inFlight = 0;
const watchers = new Set();

/** Tells `watcher` how many requests are under way, whenever that changes. */
export const watchProgress = (watcher) => watchers.add(watcher);

function moved(step) {
  inFlight += step;
  watchers.forEach((watcher) => watcher(inFlight));
}

async function problemOf(response) {
  const told = await response.json().catch(() => ({}));
  return new Problem({ ...told, status: response.status, title: told.title ?? response.statusText },
    response.headers.get('Retry-After'));
}

/** Reads all of an answer before the request counts as done. */
async function request(path, { method = 'GET', body, type, signal, quiet = false } = {}, read) {
  const headers = {};
  const token = sessionStorage.getItem(TOKEN);
  if (token !== null) headers.Authorization = `Bearer ${token}`;
  if (type !== undefined) headers['Content-Type'] = type;
  if (!quiet) moved(1);
  try {
    const response = await fetch(path, { method, body, headers, signal });
    if (!response.ok) throw await problemOf(response);
    return await read(response);
  } catch (error) {
    if (error instanceof Problem || error.name === 'AbortError') throw error;
    throw new Problem({ status: 0, detail: 'The service cannot be reached.' });
  } finally {
    if (!quiet) moved(-1);
  }
}

const asJson = (response) => response.json();
const asText = (response) => response.text();

/** Each line of an NDJSON answer, as it comes. */
async function eachLine(response, seen) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '';
  for (;;) {
    const { value, done } = await reader.read();
    const lines = (rest + (value ?? '')).split('\n');
    rest = done ? '' : lines.pop();
    lines.filter((line) => line.trim() !== '').forEach((line) => seen(JSON.parse(line)));
    if (done) return;
  }
}

const get = (path, signal) => request(path, { signal }, asJson);
const post = (path, body, signal) =>
  request(path, { method: 'POST', body: JSON.stringify(body), type: 'application/json', signal }, asJson);
const query = (fields) => new URLSearchParams(fields).toString();

export const stats = () => get('/v1/stats');
/** For polling: the bar that shows progress would blink. */
export const statsQuietly = (signal) => request('/v1/stats', { signal, quiet: true }, asJson);
export const plan = (fields, signal) => get(`/v1/plan?${query(fields)}`, signal);
export const search = (body, signal) => post('/v1/search', body, signal);
export const compare = (a, b, signal) => post('/v1/compare', { a, b }, signal);
export const clusters = (fields, signal) => get(`/v1/clusters?${query(fields)}`, signal);
export const cluster = (id, fields, signal) => get(`/v1/clusters/${encodeURIComponent(id)}?${query(fields)}`, signal);
export const add = (document) => post('/v1/documents', document);
export const sample = () => request('/sample.jsonl', {}, asText);

/** Adds the documents of an NDJSON text; `seen` gets what the service says of each. */
export const addLines = (lines, seen) => request('/v1/documents',
  { method: 'POST', body: lines, type: 'application/x-ndjson' }, (response) => eachLine(response, seen));
