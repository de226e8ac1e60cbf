// A picture of a cluster: members that are nearer to each other are drawn nearer to each other.

import { roving, svg } from './dom.js';
import { counted, shorten } from './format.js';
import { compareLink } from './routes.js';

const NARROW = 480;
const BROAD = 1120;
const MOST_HEIGHT = 330;
/** About how wide a letter of a label is: on a narrow screen they are larger. */
const LETTER = { narrow: 9.1, broad: 7.3 };
const LEAST_HEIGHT = 150;
const EDGE = 44;
const ROUNDS = 260;
const ALL_EDGES = 120;
const LINKS_EACH = 3;
const FEW = 3;
/** Turning by the golden angle spreads any number of points evenly, without chance. */
const GOLDEN_ANGLE = Math.PI * (3 - Math.sqrt(5));

/** Places of the members: springs along the edges, every two push each other away, the keeper stays in the middle. */
function layout(size, edges, radius, keeper) {
  const points = Array.from({ length: size }, (_, place) => ({
    x: 30 * Math.sqrt(place) * Math.cos(place * GOLDEN_ANGLE),
    y: 30 * Math.sqrt(place) * Math.sin(place * GOLDEN_ANGLE),
  }));
  Object.assign(points[keeper], { x: 0, y: 0 });
  const degree = new Array(size).fill(0);
  edges.forEach(({ a, b }) => { degree[a] += 1; degree[b] += 1; });
  const wanted = (distance) => 34 + 110 * (distance / Math.max(1, radius));
  for (let round = 0; round < ROUNDS; round += 1) {
    const forces = points.map(() => ({ x: 0, y: 0 }));
    const pull = (a, b, strength) => {
      const [dx, dy] = [points[b].x - points[a].x, points[b].y - points[a].y];
      const length = Math.max(1, Math.hypot(dx, dy));
      const force = strength(length) / length;
      forces[a].x += dx * force; forces[a].y += dy * force;
      forces[b].x -= dx * force; forces[b].y -= dy * force;
    };
    for (let a = 0; a < size; a += 1) {
      for (let b = a + 1; b < size; b += 1) pull(a, b, (length) => -900 / length);
    }
    edges.forEach(({ a, b, distance }) => {
      pull(a, b, (length) => (length - wanted(distance)) * (1.6 / Math.sqrt(degree[a] * degree[b])));
    });
    const most = 24 * (1 - round / ROUNDS) + 0.5;
    points.forEach((point, place) => {
      if (place === keeper) return;
      const { x, y } = forces[place];
      const share = Math.min(1, most / Math.max(1e-9, Math.hypot(x, y)));
      point.x += x * share;
      point.y += y * share;
    });
  }
  return points;
}

/** Turned so that the longer way is across. */
function turned(points) {
  const mean = (value) => points.reduce((sum, point) => sum + value(point), 0) / points.length;
  const [x, y] = [mean((p) => p.x), mean((p) => p.y)];
  const angle = Math.atan2(2 * mean((p) => (p.x - x) * (p.y - y)), mean((p) => (p.x - x) ** 2) - mean((p) => (p.y - y) ** 2)) / 2;
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return points.map((p) => ({ x: p.x * cos + p.y * sin, y: p.y * cos - p.x * sin }));
}

/** Moved and scaled so that all points are in the picture, which is as tall as it has to be. */
function fitted(points, width) {
  const [left, right] = [Math.min(...points.map((p) => p.x)), Math.max(...points.map((p) => p.x))];
  const [top, bottom] = [Math.min(...points.map((p) => p.y)), Math.max(...points.map((p) => p.y))];
  const scale = Math.min(2, (width - 2 * EDGE) / Math.max(1, right - left), (MOST_HEIGHT - 2 * EDGE) / Math.max(1, bottom - top));
  const height = Math.max(LEAST_HEIGHT, (bottom - top) * scale + 2 * EDGE);
  const place = ({ x, y }) => ({ x: width / 2 + (x - (left + right) / 2) * scale, y: height / 2 + (y - (top + bottom) / 2) * scale });
  return { points: points.map(place), width, height };
}

/** Where a label can be, from its point, the best places first: how far, and which end of it is there. */
const LABEL_PLACES = [-15, 24, 4, -36, 45, -57, 66].flatMap((dy) => (dy === 4 ? [[15, dy, 'start'], [-15, dy, 'end']] : [[-9, dy, 'start'], [9, dy, 'end']]));

/** A label where it covers the fewest points and stays in the picture. */
function label(point, text, { points, width, height }) {
  const isBroad = width > NARROW;
  const said = shorten(text, isBroad ? 44 : 26);
  const wide = said.length * (isBroad ? LETTER.broad : LETTER.narrow);
  const badness = ([dx, dy, anchor]) => {
    const [left, middle] = [point.x + dx - (anchor === 'end' ? wide : 0), point.y + dy - 4];
    const covers = points.filter((other) => other !== point && other.x > left - 8 && other.x < left + wide + 8 && Math.abs(other.y - middle) < 16);
    return covers.length + (left < 0 || left + wide > width || middle < 8 || middle > height - 8 ? points.length : 0);
  };
  const [dx, dy, anchor] = LABEL_PLACES.reduce((best, place) => (badness(place) < badness(best) ? place : best));
  return svg('text', { class: 'node-label', x: point.x + dx, y: point.y + dy, 'text-anchor': anchor }, said);
}

/** A line of a link; the more there are, the finer (`fine`) they are. */
function edgeLine({ a, b, distance }, points, radius, fine) {
  const near = 1 - distance / (radius + 1);
  return svg('line', {
    class: 'edge', x1: points[a].x, y1: points[a].y, x2: points[b].x, y2: points[b].y,
    'stroke-width': ((0.9 + 3 * near * near) * fine).toFixed(2), 'stroke-opacity': (0.55 + 0.35 * near * fine).toFixed(2),
  }, svg('title', {}, `${counted(distance, 'bit')} apart`));
}

function node(member, point, size, keeperId) {
  const dot = svg('circle', { cx: point.x, cy: point.y, r: member.keeper ? size + 3 : size });
  const reach = svg('circle', { class: 'reach', cx: point.x, cy: point.y, r: 12 });
  if (member.keeper) return svg('g', { class: 'node keeper' }, dot, svg('title', {}, `${member.id}: the keeper`));
  return svg('a', {
    class: 'node', href: compareLink(keeperId, member.id),
    'aria-label': `${member.id}, ${counted(member.distance, 'bit')} from the keeper: compare`,
  }, reach, dot);
}

/** The links that are drawn: of very many, only the nearest of each member and those that hold the cluster together. */
export function drawnEdges({ members, edges }) {
  if (edges.length <= ALL_EDGES) return edges;
  const group = members.map((_, place) => place);
  const root = (place) => {
    while (group[place] !== place) place = group[place];
    return place;
  };
  const links = members.map(() => 0);
  return [...edges].sort((one, other) => one.distance - other.distance).filter(({ a, b }) => {
    const joins = root(a) !== root(b);
    if (!joins && links[a] >= LINKS_EACH && links[b] >= LINKS_EACH) return false;
    group[root(a)] = root(b);
    links[a] += 1;
    links[b] += 1;
    return true;
  });
}

/** The SVG of a cluster; its nodes are links to the comparison with the keeper. */
export function clusterPicture(cluster, radius, isBroad) {
  const { members, edges } = cluster;
  const keeper = Math.max(0, members.findIndex((member) => member.keeper));
  const drawing = fitted(turned(layout(members.length, edges, radius, keeper)), isBroad ? BROAD : NARROW);
  const { points, width, height } = drawing;
  const size = members.length > 80 ? 4 : 6;
  const drawn = drawnEdges(cluster);
  const fine = Math.min(1, Math.sqrt(40 / drawn.length));
  const nodes = members.map((member, place) => node(member, points[place], size, members[keeper].id));
  const shown = svg('g', { class: 'labels', 'aria-hidden': 'true' });
  const few = members.length <= FEW;
  const labelled = (place) => shown.replaceChildren(...members.flatMap((member, other) =>
    (few || member.keeper || other === place ? [label(points[other], member.id, drawing)] : [])));
  nodes.forEach((one, place) => {
    ['pointerenter', 'focus'].forEach((event) => one.addEventListener(event, () => labelled(place)));
    ['pointerleave', 'blur'].forEach((event) => one.addEventListener(event, () => labelled(null)));
  });
  labelled(null);
  const picture = svg('svg', { class: 'cluster-picture', id: 'cluster-picture', viewBox: `0 0 ${width} ${height.toFixed(1)}`, role: 'group', 'aria-label': 'The members and their links. Arrow keys go from one to another.' },
    svg('g', {}, drawn.map((edge) => edgeLine(edge, points, radius, fine))), svg('g', {}, nodes), shown);
  roving(picture, nodes.filter((one) => one.localName === 'a'));
  return picture;
}
