// Views are in the hash of the address, so that the back button works and they can be linked to.

const encode = encodeURIComponent;

function decode(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const searchLink = (id) => `#search/${encode(id)}`;

/** A cluster depends on the radius; that of the service is left out. */
export const clusterLink = (id, radius, usual) =>
  `#clusters/${encode(id)}${radius === usual ? '' : `/${radius}`}`;

/** An empty `a` stands for the text or signature that was searched with, which no link can hold. */
export const compareLink = (a, b) => `#compare/${encode(a ?? '')}/${encode(b)}`;

/** The view that a hash names, with the parts that follow. */
export function route(hash) {
  const [name, ...parts] = hash.replace(/^#/, '').split('/').map(decode);
  if (name === 'compare' && parts.length === 2) return { view: 'comparison', parts };
  if (name === 'clusters' && parts[0]) return { view: 'cluster', parts };
  if (name === 'clusters' || name === 'collection') return { view: name, parts: [] };
  return { view: 'search', parts: name === 'search' ? parts : [] };
}
