/* What Waymark runs in a page: acts, waits until the page is quiet, reports what is visible.
 *
 * The parts of `page_scripts.py` are one script, installed before any script of the page. This part owns
 * the calls from outside: `step` acts by DOM events and resolves to JSON, which says what came of the action and,
 * unless another document is on its way or a tab was opened, what is visible; `begin` says what input the browser
 * must give for an action, and `finish`, called before that input and released by its last event (or, where that
 * goes elsewhere, by `handed`), resolves as `step` does.
 * Decides nothing about how a page is shown. Codes are those of `feedback.py`. */

const look = (options, load) => {
  const ends = now() + options.look_ms, hopeless = bottomless(), holder = [];
  const view = options.webrl ? window.__waymarkView(ends, hopeless) : null;
  const fresh = {refs: [], roots: [document], numbers: view?.numbers, left: {...ALLOWED, ends}, held: new WeakSet()};
  Object.assign(state, fresh, {selectors: [], editors: new Map(), scopes: new Map()});
  const body = bodyOf.call(document);
  if (body && !hopeless) {
    state.selectors.push(...selectorsAt(document), ...selectorsAt(body));
    state.editors = editorsOf([document]);
    const inert = document.querySelector(":modal") !== null;
    visit(body, holder, 0, {outer: null, editing: false, inert, cut: null, clip: null, anchored: null, pointed: false}, options);
  }
  if (view) state.refs = view.elements;
  return {aside: options.aside(), url: location.href.slice(0, MAX_LONG), title: titleOf.call(document).slice(0, MAX_SHORT), root: holder[0] ?? ["body", {}], tree: view?.tree, window: view?.window,
    cut: hopeless || state.left.cut || Boolean(view?.cut), status: load?.responseStatus ?? 0};
};

/* ---- whether anything came of an action ---- */

const observer = new MutationObserver(() => { state.changed = true; });
const watch = () => {
  const all = {subtree: true, childList: true, attributes: true, characterData: true};
  for (const root of state.roots) observer.observe(root, all);
};
for (const type of ["input", "change", "reset", "toggle"]) {
  addListener.call(window, type, () => { state.changed = true; }, true);
}

const still = () => {
  if (observer.takeRecords().length) state.changed = true;
  observer.disconnect();
  const {was, target} = state.focus;
  const field = target && (isField(target) || target.localName === "select" || target.isContentEditable);
  return !state.changed && !field && [was, target, document.body].includes(focused());
};

/* ---- the calls from outside ---- */

const start = (action, options) => {
  Object.assign(work, {leaving: false, expected: 0});
  Object.assign(state, {newTab: false, posted: false, feedback: [], invalid: null, changed: action === null, code: "", detail: "",
    after: null, release: null, awaited: {type: "", count: 0}, opened: 0, asked: 0, origins: options.origins, ahead: options.settle_ms});
  const was = focused();
  state.focus = {was, target: action === null || action.n === null ? was : state.refs[action.n]};
  if (action) watch();
};

const end = async options => {
  await settle(now() + options.settle_ms);
  if (state.after) state.code = state.after();
  const invalid = state.invalid === null ? -1 : state.refs.indexOf(state.invalid);
  const load = performance.getEntriesByType("navigation")[0];
  const result = {code: state.code, detail: state.detail, invalid, new_tab: state.newTab, posted: state.posted,
    feedback: state.feedback, navigating: work.leaving, still: still(),
    redirects: load?.redirectCount ?? 0, entry: window.navigation?.currentEntry?.key ?? ""};
  if (!work.leaving && !state.newTab) Object.assign(result, look(options, load));
  return written(result);
};

const step = async (action, options) => {
  start(action, options);
  if (action) state.code = perform(action);
  return end(options);
};

const begin = (action, options) => {
  start(action, options);
  const {input = [], code = "", detail = "", after = null} = plan(action);
  Object.assign(state, {code, detail, after, awaited: lastEvent(input)});
  return written({input});
};

/* Ends the wait for input that never comes; who gives it says `handed`, and on a busy machine says so late. */
const INPUT_MS = 10000;

/* The event that the last of the input brings, and how many of its kind come. */
const lastEvent = input => {
  const last = input.at(-1);
  if (!last) return {type: "", count: 0};
  if (last.drag) return {type: "let go", count: 1};  // no event of the page says so: `handed` does
  if (last.key) return {type: "keyup", count: input.filter(one => one.key).length};
  if (last.text) return {type: "input", count: 1};
  return {type: last.move ? "mousemove" : "mouseup", count: 1};
};
for (const type of ["input", "keyup", "mousemove", "mouseup"]) addListener.call(window, type, event => {
  if (event.isTrusted && state.awaited.type === type && --state.awaited.count === 0) handed();
}, true);

const finish = async options => {
  if (!state.focus) start(null, options);  // this document came after `begin`: the page went on by itself
  const released = new Promise(resolve => { state.release = resolve; });
  if (state.awaited.count > 0) await Promise.race([released, pause(INPUT_MS)]);
  return end(options);
};

const handed = () => { state.release?.(); state.release = null; };

Object.defineProperty(window, "__waymark", {value: Object.freeze({step, begin, finish, handed, rest, busy, stir, state, listening})});
