// Two texts side by side, their differences marked, long stretches that are the same folded.

import { h } from './dom.js';
import { counted } from './format.js';

/** So many words of a folded stretch stay on either side, and fewer than `LEAST` are not worth folding. */
const CONTEXT = 24;
const LEAST = 30;

/** Words with the space around them: nothing is lost. */
const words = (text) => text.match(/\s*\S+\s*/g) ?? [];

/** A stretch that is the same, cut into what is shown and what is folded. */
function fold(text, isFirst, isLast) {
  const all = words(text);
  const head = isFirst && !isLast ? 0 : CONTEXT;
  const tail = isLast ? 0 : CONTEXT;
  const folded = all.length - head - tail;
  if (folded < LEAST) return [{ side: 'both', text }];
  const cut = (from, to) => all.slice(from, to).join('');
  return [
    { side: 'both', text: cut(0, head) },
    { side: 'fold', text: cut(head, all.length - tail), count: folded },
    { side: 'both', text: cut(all.length - tail) },
  ].filter((part) => part.text !== '');
}

/** Whether all that differs at the end of a row ends with its line: what follows can stand beside itself again. */
function endsLine(row) {
  const last = row.slice(row.findLastIndex((part) => part.side === 'both') + 1);
  return last.length > 0 && last.every((part) => /\n\s*$/.test(part.text));
}

/** Rows that stand beside each other: they end at folds, and at line ends within what is the same. A blank line is a gap. */
function rows(parts) {
  const all = [];
  let row = [];
  const end = () => {
    if (row.length > 0) all.push(row);
    row = [];
  };
  for (const part of parts) {
    if (part.side === 'both' && endsLine(row)) end();
    if (part.side === 'fold') {
      end();
      all.push([part]);
    } else if (part.side === 'both') {
      part.text.split(/(?<=\n)/).forEach((text) => {
        if (row.length === 0 && text.trim() === '') {
          if (all.length > 0) all.at(-1).gap = true;
          return;
        }
        row.push({ side: 'both', text });
        if (text.endsWith('\n')) end();
      });
    } else {
      row.push(part);
    }
  }
  end();
  return all;
}

/** The differences with long equal stretches folded. */
const folded = (diff) =>
  diff.flatMap((part, place) => (part.side === 'both' ? fold(part.text, place === 0, place === diff.length - 1) : [part]));

const MARKS = { a: 'del', b: 'ins' };

/** Spaces around what differs are not marked, unless they are all that does. */
function marked(text, tag) {
  const [, before, core, after] = text.match(/^(\s*)([^]*?)(\s*)$/);
  return core === '' ? [h(tag, {}, '␣'), text] : [before, h(tag, {}, core), after];
}

function cell(row, side) {
  const parts = row.filter((part) => part.side === 'both' || part.side === side);
  const nodes = parts.flatMap((part, place) => {
    const text = place === parts.length - 1 ? part.text.trimEnd() : part.text;
    return part.side === 'both' ? [text] : marked(text, MARKS[side]);
  });
  return h('div', { class: `side side-${side}`, dir: 'auto' }, nodes);
}

function rowElement(row) {
  const same = row.every((part) => part.side === 'both');
  return h('div', { class: `diff-row${same ? ' same' : ''}${row.gap || /\n\s*\n\s*$/.test(row.at(-1).text) ? ' gap' : ''}` }, cell(row, 'a'), cell(row, 'b'));
}

function foldElement(part) {
  const row = h('div', { class: 'diff-fold' });
  const unfold = () => {
    const shown = rows([{ side: 'both', text: part.text }]).map(rowElement);
    row.replaceWith(...shown);
    shown[0].tabIndex = -1;
    shown[0].focus({ preventScroll: true });
  };
  row.append(h('button', { type: 'button', class: 'unfold', on: { click: unfold } }, `… ${counted(part.count, 'word')} the same …`));
  return row;
}

/** The texts of a comparison, with names for its sides. */
export function diffView(diff, names) {
  const head = h('div', { class: 'diff-head' }, ['a', 'b'].map((side) =>
    h('div', { class: `side side-${side}` }, h('span', { class: 'letter' }, side.toUpperCase()), names[side]())));
  const body = rows(folded(diff)).map((row) => (row[0].side === 'fold' ? foldElement(row[0]) : rowElement(row)));
  return h('div', { class: 'diff', id: 'diff' }, head, body);
}
