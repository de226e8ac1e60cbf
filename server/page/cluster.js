// One cluster: its members, how they hang together, and any two of them compared.

import * as api from './api.js';
import { suspicion } from './clusters.js';
import { byId, h, put } from './dom.js';
import { chips, count, counted, fact, idText, likeness, radiusMeaning } from './format.js';
import { clusterPicture, drawnEdges } from './picture.js';
import { told } from './problem.js';
import { compareLink, searchLink } from './routes.js';

const MOST_MEMBERS = 200;
/** A picture of more members than this is as broad as the page, where the page is. */
const FEW_MEMBERS = 6;
const BROAD_PAGE = '(min-width: 861px)';

function facts(cluster) {
  const big = (value) => h('span', { class: 'big' }, count(value));
  return h('dl', { class: 'facts' },
    fact('Documents', big(cluster.size)),
    fact('Distinct signatures', big(cluster.distinct)),
    fact('Longest chain', big(cluster.longest_chain), cluster.longest_chain === 1 ? ' step' : ' steps'),
    fact('Farthest two', big(cluster.farthest), cluster.farthest === 1 ? ' bit' : ' bits'),
    fact('Least similarity', likeness(cluster.min_similarity)));
}

/** Its roles are said because on a phone the rows are not laid out as those of a table. */
function memberRow(member, keeper) {
  const name = h('a', { class: 'mono', href: searchLink(member.id), title: 'Find its lookalikes' }, idText(member.id));
  return h('tr', { class: member.keeper ? 'member keeper' : 'member', role: 'row', 'data-id': member.id },
    h('td', { class: 'choose', role: 'cell' }, h('input', { type: 'checkbox', class: 'choose-member', value: member.id, 'aria-label': `Choose ${member.id}` })),
    h('td', { role: 'cell' }, name, member.keeper && h('span', { class: 'badge accent' }, 'keeper'), chips(member.payload)),
    h('td', { class: 'near', role: 'cell' }, member.keeper ? null : [likeness(member.similarity), h('span', { class: 'distance' }, h('span', { class: 'number' }, String(member.distance)), member.distance === 1 ? ' bit' : ' bits')]),
    h('td', { class: 'act', role: 'cell' }, member.keeper ? null : h('a', { class: 'button compare', href: compareLink(keeper.id, member.id), 'aria-label': `Compare ${member.id} with the keeper` }, 'Compare')));
}

/** Two members that are chosen can be compared; a third one takes the place of the first. */
function pairChoice(table) {
  const chosen = [];
  const button = h('a', { class: 'button', id: 'compare-chosen', role: 'link', 'aria-disabled': 'true' }, 'Compare the chosen two');
  const show = () => {
    const ready = chosen.length === 2;
    if (ready) button.setAttribute('href', compareLink(chosen[0].value, chosen[1].value));
    else button.removeAttribute('href');
    button.setAttribute('aria-disabled', String(!ready));
  };
  table.addEventListener('change', ({ target }) => {
    if (target.checked) chosen.push(target);
    else chosen.splice(chosen.indexOf(target), 1);
    if (chosen.length > 2) chosen.shift().checked = false;
    show();
  });
  return button;
}

function membersView(cluster) {
  const keeper = cluster.members.find((member) => member.keeper) ?? cluster.members[0];
  const heads = [['Choose', 'hidden'], ['Document', ''], ['To the keeper', ''], ['Compare with the keeper', 'hidden']];
  const table = h('table', { class: 'members', id: 'members', role: 'table' },
    h('thead', {}, h('tr', {}, heads.map(([name, kind]) => h('th', { scope: 'col' }, h('span', { class: kind }, name))))),
    h('tbody', {}, cluster.members.map((member) => memberRow(member, keeper))));
  return h('section', { class: 'card', 'aria-labelledby': 'members-title' },
    h('div', { class: 'card-head' }, h('h2', { id: 'members-title' }, 'Members'), pairChoice(table)),
    table);
}

function pictureView(cluster, radius, isBroad) {
  const drawn = drawnEdges(cluster).length;
  return h('section', { class: 'card', 'aria-labelledby': 'picture-title' },
    h('h2', { id: 'picture-title' }, 'How they hang together'),
    clusterPicture(cluster, radius, isBroad),
    h('p', { class: 'hint' }, 'The thicker a line, the nearer the two. A point opens its comparison with the keeper.',
      drawn < cluster.edges.length && ` Of ${count(cluster.edges.length)} links, the nearest of each are drawn (${count(drawn)}).`));
}

export function createCluster(app) {
  const body = byId('cluster-body');
  const line = byId('cluster-line');
  let underWay = null;
  let shown = null;

  async function load(id, radius) {
    underWay?.abort();
    underWay = new AbortController();
    const { signal } = underWay;
    const place = h('div', {});
    put(byId('cluster-title'), 'Cluster of ', h('span', { class: 'mono' }, idText(id, 80)));
    put(line, 'Loading …');
    put(body, place);
    const answer = await told(place, () => api.cluster(id, { radius, limit: MOST_MEMBERS }, signal).then(show));
    if (answer === null && !signal.aborted) put(line);

    function show(cluster) {
      const why = suspicion(cluster, radius, app.stats);
      const isBroad = cluster.members.length > FEW_MEMBERS && window.matchMedia(BROAD_PAGE).matches;
      put(line, `Within ${radiusMeaning(radius, app.stats)}.`);
      put(body,
        why && h('div', { class: 'note warn', id: 'suspicious' }, h('p', {}, h('strong', {}, 'Suspicious: '), `${why}. Compare the ends before you remove any.`)),
        facts(cluster),
        cluster.more && h('div', { class: 'note', id: 'not-all' }, h('p', {}, `The cluster has ${counted(cluster.size, 'document')}; the first ${count(cluster.members.length)} are shown.`)),
        h('div', { class: `columns cluster-columns${isBroad ? ' stacked' : ''}` }, cluster.members.length > 1 && pictureView(cluster, radius, isBroad), membersView(cluster)));
      return cluster;
    }
  }

  return {
    show(id, given) {
      const radius = /^\d+$/.test(given ?? '') ? Number(given) : app.stats.radius;
      const asked = JSON.stringify([id, radius, app.stats.position]);
      if (asked === shown) return;
      shown = asked;
      load(id, radius).catch(() => { shown = null; });
    },
  };
}
