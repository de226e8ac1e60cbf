// Building blocks of the page. Documents are hostile: everything becomes a text node or an attribute, never markup.

const SVG = 'http://www.w3.org/2000/svg';

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'on') {
      for (const [event, listener] of Object.entries(value)) element.addEventListener(event, listener);
    } else {
      element.setAttribute(name, value === true ? '' : value);
    }
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** An HTML element with attributes, listeners (`on`) and children. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** The same for SVG. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** The element of index.html with this id. */
export const byId = (id) => document.getElementById(id);

/** Puts `children` in the place of what was in `element`. */
export function put(element, ...children) {
  element.replaceChildren(...children.flat().filter(Boolean));
}

/** Calls `action` when nothing was asked for during `wait` milliseconds. */
export function debounced(action, wait = 200) {
  let timer;
  const later = (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
  later.cancel = () => clearTimeout(timer);
  return later;
}

/** The value of the chosen radio button. */
export const chosen = (name) => document.querySelector(`input[name="${name}"]:checked`).value;

/** Arrow keys move the focus among many items, so that they are a single stop of the Tab key. */
export function roving(container, items) {
  items.forEach((item, place) => item.setAttribute('tabindex', place === 0 ? '0' : '-1'));
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
  const go = (place) => {
    items.forEach((item) => item.setAttribute('tabindex', '-1'));
    items[place].setAttribute('tabindex', '0');
    items[place].focus();
  };
  container.addEventListener('keydown', (event) => {
    const place = items.indexOf(document.activeElement);
    if (place < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    const last = items.length - 1;
    const next = { Home: 0, End: last }[event.key] ?? (event.key in steps ? place + steps[event.key] : null);
    if (next === null) return;
    event.preventDefault();
    go(Math.min(last, Math.max(0, next)));
  });
}
