/* What the parts of the page script share.
 *
 * Owns the functions of the page that are taken before its own scripts can replace them, and the state. A frame of the
 * same origin has this script too and shares the state of the page around it. */

const now = performance.now.bind(performance);
const later = window.setTimeout.bind(window);
const addListener = EventTarget.prototype.addEventListener;
const {stringify} = JSON;

/* Elements that a page names "title" or "body" stand before the document's own. */
const own = name => Object.getOwnPropertyDescriptor(Document.prototype, name).get;
const titleOf = own("title"), bodyOf = own("body"), allOf = Document.prototype.getElementsByTagName;

/* Whether elements lie in one another so deeply that Chromium's renderer dies when it lays them out (measured: at 3000
 * blocks; the parser ends at 512). Asking such a page for a style would be its end; nothing here may do that. */
const MAX_NESTING = 2500;
const bottomless = () => {
  const {length} = allOf.call(document, "*");
  if (length <= MAX_NESTING) return false;
  let at = document.documentElement, depth = 0;
  for (let seen = 0; at && seen < length; seen += 1) {
    if (depth > MAX_NESTING) return true;
    if (at.firstElementChild) { at = at.firstElementChild; depth += 1; continue; }
    while (at && !at.nextElementSibling) { at = at.parentElement; depth -= 1; }
    at = at?.nextElementSibling;
  }
  return false;
};

/* A reply as JSON. Pages and their libraries give prototypes a toJSON, which would change it. */
const KINDS = [Object.prototype, Array.prototype, String.prototype, Number.prototype, Boolean.prototype];
const written = value => {
  const kept = KINDS.filter(kind => Object.hasOwn(kind, "toJSON")).map(kind => [kind, Object.getOwnPropertyDescriptor(kind, "toJSON")]);
  for (const [kind] of kept) delete kind.toJSON;
  try { return stringify(value); } finally {
    for (const [kind, property] of kept) Object.defineProperty(kind, "toJSON", property);
  }
};

const outer = (() => {
  try { return window.parent === window ? null : window.parent.__waymark ?? null; } catch { return null; }
})();

/* `refs` are the numbered elements, `roots` the trees that are watched for changes; what follows is of one step. */
const state = outer?.state ?? {refs: [], roots: [], numbers: null, keys: false, origins: null, newTab: false, posted: false,
  feedback: [], invalid: null, changed: false, focus: null, code: "", detail: "", after: null, release: null,
  awaited: {type: "", count: 0}, opened: 0, asked: 0, ahead: 0, held: new WeakSet(), selectors: [], editors: new Map(), scopes: new Map()};
const listening = outer?.listening ?? new WeakSet();

/* What the agent is told beside the page; a page can say more than anyone reads. */
const MAX_FEEDBACK = 8, MAX_DETAIL = 300;
const tell = (code, detail) => {
  if (state.feedback.length < MAX_FEEDBACK) state.feedback.push({code, detail: detail.slice(0, MAX_DETAIL)});
};
