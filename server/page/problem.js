// What went wrong, told where the user is, with what can be done about it.

import { hasToken, setToken } from './api.js';
import { byId, h, put } from './dom.js';
import { sentence } from './format.js';

const COMES_AGAIN = [0, 429, 503];

function advice({ status, retryAfter }) {
  if (status !== 429 && status !== 503) return null;
  const seconds = Number(retryAfter);
  return seconds > 0 ? `Try again in ${seconds} ${seconds === 1 ? 'second' : 'seconds'}.` : 'Try again in a moment.';
}

function tokenForm(retry) {
  const input = h('input', {
    id: 'token', name: 'token', type: 'password', class: 'mono', required: true, autocomplete: 'off', spellcheck: 'false',
  });
  const use = (event) => {
    event.preventDefault();
    setToken(input.value.trim());
    retry();
  };
  return h('form', { id: 'token-form', class: 'token', on: { submit: use } },
    h('label', { for: 'token' }, 'Token'), input, h('button', { class: 'primary', type: 'submit' }, 'Use it'),
    h('p', { class: 'hint' }, 'It is kept until this tab is closed.'));
}

function inWords(problem) {
  if (problem.status !== 401) return sentence(problem.message);
  return hasToken() ? 'The token given is not a valid one.' : 'This service asks for a token.';
}

/** A box that tells of a problem; `retry` asks again. */
export function problemBox(problem, retry) {
  const refused = problem.status === 401 || problem.status === 403;
  const isQuestion = problem.status === 401 && !hasToken();
  return h('div', { class: isQuestion ? 'problem question' : 'problem', role: 'alert', 'data-status': problem.status ?? null },
    h('p', {}, h('strong', {}, inWords(problem)), advice(problem) && ` ${advice(problem)}`),
    problem.field && h('p', { class: 'hint' }, 'Field: ', h('code', {}, problem.field)),
    refused && tokenForm(retry),
    COMES_AGAIN.includes(problem.status) && h('button', { class: 'retry', type: 'button', on: { click: retry } }, 'Try again'));
}

/** Forgets what was told at the fields of a form. */
export function clearFields(form) {
  form.querySelectorAll('.field-problem').forEach((place) => {
    place.hidden = true;
    place.textContent = '';
  });
  form.querySelectorAll('[aria-invalid]').forEach((input) => {
    input.removeAttribute('aria-invalid');
    input.removeAttribute('aria-errormessage');
  });
}

/** Tells a problem at the field that it is about; false if the form does not show such a field. */
export function tellAtField(form, problem) {
  const place = problem.field && [...form.querySelectorAll('.field-problem')].find((one) => one.dataset.problem === problem.field);
  const field = place?.closest('.field');
  if (!field || field.hidden) return false;
  place.id ||= `${form.id}-problem-${place.dataset.problem}`;
  place.textContent = sentence(problem.message);
  place.hidden = false;
  const input = field.querySelector('textarea, input:not([type=file]):not([type=checkbox])');
  input.setAttribute('aria-invalid', 'true');
  input.setAttribute('aria-errormessage', place.id);
  input.focus();
  return true;
}

/** Runs what asks the service: `place` shows its problem, and nothing if it was overtaken by a newer question. */
export async function told(place, action) {
  put(place);
  try {
    return await action();
  } catch (problem) {
    if (problem.name !== 'AbortError') put(place, problemBox(problem, () => told(place, action)));
    return null;
  }
}

/** Shows that requests are under way; not for those that are done at once. */
export function progressBar() {
  const bar = byId('progress');
  let timer = null;
  return (inFlight) => {
    if (inFlight === 0) {
      clearTimeout(timer);
      timer = null;
      bar.hidden = true;
    } else {
      timer ??= setTimeout(() => { bar.hidden = false; }, 150);
    }
  };
}
