/* What the parts of the page script share.
 *
 * Owns the functions of the page that are taken before its own scripts can replace them, and the state. A frame of the
 * same origin has this script too and shares the state of the page around it. */

const now = performance.now.bind(performance);
const later = window.setTimeout.bind(window);
const addListener = EventTarget.prototype.addEventListener;

const outer = (() => {
  try { return window.parent === window ? null : window.parent.__waymark ?? null; } catch { return null; }
})();

/* `refs` are the numbered elements, `roots` the trees that are watched for changes; what follows is of one step. */
const state = outer?.state ?? {refs: [], roots: [], numbers: null, keys: false, origins: null, newTab: false, posted: false,
  notices: [], invalid: null, changed: false, focus: null, code: "", detail: "", after: null, release: null,
  awaited: {type: "", count: 0}};
const listening = outer?.listening ?? new WeakSet();
