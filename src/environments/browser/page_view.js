/* What is visible in a document, as the facts of `snapshot.py`.
 *
 * Owns which elements, attributes and texts a snapshot holds, and numbers the elements that may be acted on. Frames of
 * the same origin and open shadow trees are walked as parts of the page; of other frames there is a line. */

const KEPT = ["id", "for", "type", "role", "name", "title", "alt", "placeholder", "aria-label", "contenteditable"];
const SKIPPED = new Set(("head script style template noscript datalist canvas video audio object embed option optgroup " +
  "title link meta base param source track area map").split(" "));
const NUMBERED = new Set(["a", "button", "input", "select", "textarea", "summary"]);
const INTERACTIVE = "a[href],button,input,select,textarea,summary,[role=button],[role=link],[role=tab],[role=menuitem]";
const MAX_DEPTH = 150, MAX_CONTROL_DEPTH = 450, DEEPEST = 600, MIN_FRAME = 8;

/* What a page may take up: elements, texts and characters of all of it, and characters of one text. What is beyond is
 * not shown; `state.left.cut` says so, and `over` that nothing more is looked at. Time is bounded by the settings. */
const ALLOWED = {elements: 40000, texts: 200000, characters: 2000000, over: false, cut: false};
const MAX_SHORT = 1000, MAX_LONG = 100000, MAX_OPTIONS = 5000, MAX_REFERRED = 20;
const room = kind => {
  const {left} = state;
  if (!left.over && ((left[kind] -= 1) < 0 || left.characters <= 0 || now() > left.ends)) left.over = left.cut = true;
  return !left.over;
};
const taken = (text, most) => {
  const part = text.slice(0, Math.max(0, Math.min(most, state.left.characters)));
  state.left.characters -= part.length;
  return part;
};

const facts = (element, inside, options) => {
  const tag = element.localName, found = {__proto__: null};
  for (const name of KEPT) {
    const value = element.getAttribute(name);
    if (value !== null) found[name] = taken(value, MAX_SHORT);
  }
  if (element.hasAttribute("href")) found.href = "";
  const referred = element.getAttribute("aria-labelledby");
  if (referred) {
    const root = element.getRootNode();
    const texts = referred.split(/\s+/, MAX_REFERRED).map(id => root.getElementById?.(id)).filter(Boolean);
    if (texts.length) found.labelledby = texts.map(e => taken(e.textContent, MAX_SHORT)).join(" ");
  }
  if (tag === "input" || tag === "textarea") {
    if (tag === "input") found.type = element.type;
    found.value = element.type === "password" && element.value ? "*" : taken(element.value, MAX_LONG);
    if (["checkbox", "radio"].includes(element.type) && element.checked) found.checked = true;
  } else if (tag === "select") {
    const labels = options => [...options].slice(0, MAX_OPTIONS).map(o => taken(o.label, MAX_SHORT));
    found.options = labels(element.options);
    found.selected = labels(element.selectedOptions);
  }
  if (element.getAttribute("aria-checked") === "true") found.checked = true;
  if (element.matches(":disabled") || element.getAttribute("aria-disabled") === "true") found.disabled = true;
  if (!inside && clickable(element, tag)) found.clickable = true;
  if (NUMBERED.has(tag) || "role" in found || found.clickable || "contenteditable" in found) {
    found.n = state.refs.length;
    state.refs.push(element);
  }
  if (state.numbers?.has(element)) found.mark = String(state.numbers.get(element));
  return found;
};

const clickable = (element, tag) => {
  if (tag === "body" || tag === "html" || tag === "label" || NUMBERED.has(tag)) return false;
  const heard = listening.has(element) || element.onclick !== null;
  if (!heard) {
    if (getComputedStyle(element).cursor !== "pointer") return false;
    if (element.parentElement && getComputedStyle(element.parentElement).cursor === "pointer") return false;
  }
  return element.querySelector(INTERACTIVE) === null;
};

const inView = element => {
  const box = element.getBoundingClientRect();
  return box.bottom > 0 && box.right > 0 && box.top < innerHeight && box.left < innerWidth;
};

/* The text that stands for a frame whose document may not be read. */
const unread = frame => {
  const box = frame.getBoundingClientRect();
  if (box.width < MIN_FRAME || box.height < MIN_FRAME) return [];
  const {host} = new URL(frame.src || "about:blank", location.href);
  const title = frame.title || frame.getAttribute("aria-label") || "";
  return [document.createTextNode(`frame ${title}${title && " "}from ${host || "elsewhere"} is not shown`)];
};

const childrenOf = element => {
  const tag = element.localName;
  if (tag === "iframe" || tag === "frame") {
    const inner = element.contentDocument;
    if (!inner) return unread(element);
    state.roots.push(inner);
    return inner.body ? [inner.body] : [];
  }
  if (tag === "slot" && element.assignedNodes().length) return element.assignedNodes();
  if (element.shadowRoot) state.roots.push(element.shadowRoot);
  return (element.shadowRoot ?? element).childNodes;
};

/* A drawing counts as a picture with its title. */
const drawing = svg => {
  const title = svg.getAttribute("aria-label") ?? svg.querySelector("title")?.textContent ?? "";
  return ["img", {alt: taken(title, MAX_SHORT)}];
};

const worded = text => {
  if (text.length > MAX_LONG) state.left.cut = true;
  return taken(text, MAX_LONG).replace(/[ \t\n\r\f]+/g, " ");
};

const visit = (element, parent, depth, inside, options) => {
  const tag = element.localName;
  if (SKIPPED.has(tag) || !room("elements")) return;
  if (depth > DEEPEST) { state.left.cut = true; return; }
  const style = getComputedStyle(element);
  if (style.display === "none" || (tag === "input" && element.type === "hidden")) return;
  if (tag === "svg") { parent.push(drawing(element)); return; }
  const seen = style.visibility === "visible" && (!options.viewport_only || inView(element));
  const isControl = NUMBERED.has(tag) || element.hasAttribute("role");
  const node = [tag, seen || !isControl ? facts(element, inside, options) : {}];
  const list = depth < (node[1].n === undefined ? MAX_DEPTH : MAX_CONTROL_DEPTH) ? node : parent;
  if (!seen && isControl && (tag === "input" || tag === "select" || tag === "textarea")) return;
  if (!seen && isControl) node[0] = "span";
  parent.push(node);
  if (tag === "select" || tag === "textarea") return;
  const within = inside || tag === "a" || tag === "button" || tag === "summary" || node[1].clickable === true;
  const summary = tag === "details" && !element.open ? element.querySelector(":scope > summary") : null;
  if (tag === "details" && !element.open) { if (summary) visit(summary, list, depth + 1, within, options); return; }
  for (const child of childrenOf(element)) {
    if (child.nodeType === 1) visit(child, list, depth + 1, within, options);
    else if (child.nodeType === 3 && seen && room("texts")) list.push(worded(child.data));
    if (state.left.over) return;
  }
};
