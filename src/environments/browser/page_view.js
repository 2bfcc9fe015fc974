/* What is visible in a document, as the facts of `snapshot.py`.
 *
 * Owns which elements, attributes and texts a snapshot holds, and numbers the elements that may be acted on. Frames of
 * the same origin and open shadow trees are walked as parts of the page; of other frames there is a line. */

const KEPT = ["id", "for", "type", "role", "name", "title", "alt", "placeholder", "aria-label", "contenteditable"];
const SKIPPED = new Set(("head script style template noscript datalist canvas object embed option optgroup " +
  "title link meta base param source track").split(" "));
const NUMBERED = new Set(["a", "button", "input", "select", "textarea", "summary"]);
const EDITABLE = new Set(["", "true", "plaintext-only"]);
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

/* An id holds in its own tree only, of which a page of components has many. */
const scoped = (element, id) => {
  const root = element.getRootNode();
  if (root === document) return id;
  if (!state.scopes.has(root)) state.scopes.set(root, state.scopes.size + 1);
  return `${state.scopes.get(root)}:${id}`;
};

const facts = (element, pressed, around, style) => {
  const tag = element.localName, found = {__proto__: null};
  for (const name of KEPT) {
    const value = element.getAttribute(name);
    if (value !== null) found[name] = taken(name === "id" || name === "for" ? scoped(element, value) : value, MAX_SHORT);
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
  if (VALUED.has(found.role)) found.value ??= taken(element.getAttribute("aria-valuetext") ?? element.getAttribute("aria-valuenow") ?? "", MAX_SHORT);
  if (element.getAttribute("aria-checked") === "true") found.checked = true;
  if (element.getAttribute("aria-hidden") === "true") found.unspoken = true;
  const untouched = style.pointerEvents === "none" && ["a", "button"].includes(tag);
  if (element.matches(":disabled") || element.getAttribute("aria-disabled") === "true" || untouched) found.disabled = true;
  if (pressed) found.clickable = true;
  if (state.editors.has(element)) Object.assign(found, {role: "textbox", value: taken(editedText(element), MAX_LONG)});
  else if (EDITABLE.has(found.contenteditable)) {
    found.value = taken(element.innerText, MAX_LONG);
    found.placeholder ??= element.getAttribute("aria-placeholder") ?? element.getAttribute("data-placeholder") ?? undefined;
    if (found.placeholder === undefined) delete found.placeholder;
  }
  if (NUMBERED.has(tag) || "role" in found || found.clickable || "contenteditable" in found) {
    found.n = state.refs.length;
    state.refs.push(element);
    const used = pressed || USED_ROLES.has(found.role), is = stateOf(element, tag, used);
    if (is) found.state = is;
    const hint = used || NUMBERED.has(tag) || "contenteditable" in found ? hintOf(element, found) : "";
    if (hint) found.hint = taken(hint, MAX_SHORT);
  }
  return found;
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

/* A drawing counts as a picture with its title, unless something in it can be read or used. */
const drawing = svg => {
  const title = svg.getAttribute("aria-label") ?? svg.querySelector("title")?.textContent ?? "";
  return ["img", {alt: taken(title, MAX_SHORT)}];
};
const isPicture = svg => svg.getAttribute("role") === "img" || svg.querySelector("a, text, foreignObject, [role], [tabindex]") === null &&
  ![...svg.querySelectorAll("*")].slice(0, MAX_PARTS).some(part => listening.has(part) || part.onclick || handled(part));

/* A part of a picture that leads somewhere; it has no box of its own. */
const region = (area, parent, around) => {
  const picture = pictureOf(area);
  if (!area.href || !picture?.checkVisibility({visibilityProperty: true}) || !reachable(picture, around)) return;
  const found = {alt: taken(area.alt || area.title || area.getAttribute("aria-label") || "", MAX_SHORT), href: "", n: state.refs.length};
  state.refs.push(area);
  parent.push(["area", found]);
};

const worded = text => {
  if (text.length > MAX_LONG) state.left.cut = true;
  return taken(text, MAX_LONG).replace(/[ \t\n\r\f]+/g, " ");
};

const marked = element => state.numbers?.has(element) ? {mark: String(state.numbers.get(element))} : {};

const visit = (element, parent, depth, around, options) => {
  const tag = element.localName;
  if (SKIPPED.has(tag) || !room("elements")) return;
  if (depth > DEEPEST) { state.left.cut = true; return; }
  if (tag === "area") { region(element, parent, around); return; }
  const style = getComputedStyle(element);
  if (style.display === "none" || (tag === "input" && element.type === "hidden")) return;
  const here = placed(element, tag, style, around), role = element.getAttribute("role");
  const seen = style.visibility === "visible" && (!options.viewport_only || inView(element));
  const pressed = seen && clickable(element, tag, style, here);
  const native = tag === "a" ? element.hasAttribute("href") : NUMBERED.has(tag);
  const edited = state.editors.has(element) || (EDITABLE.has(element.getAttribute("contenteditable")) && !here.editing);
  const usable = pressed || native || edited || USED_ROLES.has(role);
  const met = seen && (!usable || (!here.editing && reachable(element, here) &&
    !((style.pointerEvents === "none" || element.tabIndex < 0) && ["input", "select", "textarea"].includes(tag) && element.ariaHidden === "true")));
  if (tag === "svg" && !pressed && !USED_ROLES.has(role) && isPicture(element)) { parent.push(drawing(element)); return; }
  if ((tag === "video" || tag === "audio") && !pressed) return;
  const isControl = NUMBERED.has(tag) || role !== null || usable;
  const node = [tag, {...(met || !isControl ? facts(element, pressed, here, style) : {}), ...marked(element)}];
  const list = depth < (node[1].n === undefined ? MAX_DEPTH : MAX_CONTROL_DEPTH) ? node : parent;
  if (!met && isControl && (tag === "input" || tag === "select" || tag === "textarea")) return;
  if (!met && isControl) node[0] = "span";
  if (tag === "svg" && node[1].n !== undefined) node[1].alt ??= drawing(element)[1].alt;
  parent.push(node);
  if (tag === "select" || tag === "textarea" || tag === "video" || tag === "audio" || state.editors.has(element)) return;
  if (listening.has(element)) state.selectors.push(...selectorsAt(element));
  const holds = usable && met;
  // A frame's content lies in coordinates of its own.
  const own = tag === "iframe" || tag === "frame" ? {clip: here.clip === NOWHERE ? NOWHERE : null, anchored: null} : {};
  const inner = {...here, ...own, pointed: here.points, outer: holds ? element : here.outer, editing: here.editing || (edited && met)};
  const summary = tag === "details" && !element.open ? element.querySelector(":scope > summary") : null;
  if (tag === "details" && !element.open) { if (summary) visit(summary, list, depth + 1, inner, options); return; }
  const written = seen && inner.clip !== NOWHERE && !(tag === "svg" || tag === "title");
  for (const child of childrenOf(element)) {
    if (child.nodeType === 1) visit(child, list, depth + 1, inner, options);
    else if (child.nodeType === 3 && written && room("texts")) list.push(worded(child.data));
    if (state.left.over) return;
  }
};
