/* Which elements a person could use.
 *
 * Owns what counts as usable beside native controls (listeners, handlers that frameworks keep, pointer cursors, the
 * focus order), the rows of containers that listen for them, and whether a pointer gets to an element at all. Shape and
 * colour are not judged: what only a drawing tells is not known here. */

const INTERACTIVE = "a[href],button,input,select,textarea,summary,[role=button],[role=link],[role=tab],[role=menuitem]";
const USED_ROLES = new Set(("button link tab menuitem menuitemcheckbox menuitemradio checkbox radio switch option combobox " +
  "textbox searchbox slider spinbutton treeitem").split(" "));
const FIELDS = "input:not([type=hidden], [type=button], [type=submit], [type=reset], [type=image], [type=checkbox], [type=radio]), textarea";
const ROWS = "tr, li, [role=row], [role=listitem], [role=option], [role=treeitem]";
const LISTS = "ul, ol, menu, table, tbody, [role=list], [role=listbox], [role=tree], [role=grid], [role=rowgroup]";
const SHORT_TEXT = 80, LEAST_ROWS = 3, MAX_ROWS = 1000, LEAST_SIZE = 2, SAME_AREA = 0.3, STRIP = 8, MAX_PARTS = 3000;
const squeezed = text => text.replace(/[\u200b\u2060\ufeff]/g, "").replace(/\s+/g, " ").trim();

/* What is put into a slot stands there, and a component's own tree stands for what it holds. */
const shownIn = node => node.localName === "slot" && node.assignedNodes().length ? node.assignedNodes() : (node.shadowRoot ?? node).childNodes;
const shownText = node => node.nodeType === 3 ? node.data : node.nodeType !== 1 || node.localName === "style" ? "" :
  [...shownIn(node)].map(shownText).join("");
const slotted = element => state.roots.length > 1 && element.getRootNode() instanceof ShadowRoot &&
  (element.localName === "slot" || element.querySelector("slot") !== null);
const textOf = element => squeezed((slotted(element) ? shownText(element) : element.textContent).slice(0, MAX_LONG));
/* Whether an element is no more than the one control in a component below it. */
const wraps = element => {
  const found = [];
  const gather = node => {
    for (const child of shownIn(node)) {
      if (child.nodeType !== 1 || found.length > 1) continue;
      if (child.matches(INTERACTIVE)) found.push(child); else gather(child);
    }
  };
  if (element.shadowRoot || state.roots.length > 1) gather(element);
  const [only, other] = found;
  return Boolean(only) && !other && only.getRootNode() !== element.getRootNode() && squeezed(shownText(element)) === textOf(only);
};

/* Whether an element is no more than the frame of one field: what is said in it is the field's label, or a control's. */
const frames = element => {
  const [field, other] = [...element.querySelectorAll(FIELDS)].slice(0, MAX_PARTS).filter(one => one.checkVisibility({visibilityProperty: true}));
  if (!field || other || getComputedStyle(field).pointerEvents === "none") return false;
  const said = [...(field.labels ?? []), ...element.querySelectorAll(INTERACTIVE)].filter(one => element.contains(one) && one !== field);
  return squeezed(said.reduce((text, one) => text.replace(one.innerText ?? "", ""), element.innerText)) === "";
};

/* ---- handlers that are not listeners of the element ---- */

const HANDLERS = ["onClick", "onMouseDown", "onPointerDown", "onMouseUp"];
const REACT = /^__react(Props|EventHandlers)\$/, ROOT = /^(__reactContainer\$|_reactListening|__vue_app__$|_reactRootContainer$)/;
const handled = element => {
  try {
    if (element.__click || element.$$click) return true;  // Svelte, Solid
    const own = Object.keys(element), props = own.length && element[own.find(key => REACT.test(key))];
    return Boolean(props) && HANDLERS.some(name => typeof props[name] === "function");
  } catch { return false; }
};
const isRoot = element => Object.keys(element).some(key => ROOT.test(key));

/* What jQuery's delegated listeners wait for below an element. */
const selectorsAt = element => {
  try {
    const events = window.jQuery?._data?.(element, "events") ?? {};
    return [...CLICKS].flatMap(type => events[type] ?? []).map(one => one.selector).filter(one => typeof one === "string" && one);
  } catch { return []; }
};
const selected = element => state.selectors.some(selector => { try { return element.matches(selector); } catch { return false; } });

const TOGGLES = "[data-toggle]:not([data-toggle=tooltip]), [data-bs-toggle]:not([data-bs-toggle=tooltip])";
const presses = element => listening.has(element) || element.onclick || element.onmousedown || element.onpointerdown ||
  handled(element) || (element.hasAttributes() && (element.matches(TOGGLES) || (state.selectors.length > 0 && selected(element))));

/* ---- containers that listen for what they hold ---- */

const rowsOf = element => {
  const rows = [...element.querySelectorAll(ROWS)].slice(0, MAX_ROWS).filter(row => textOf(row) && !row.querySelector("th"));
  if (rows.length > 1 || (rows.length === 1 && element.matches(LISTS))) return rows;
  let holder = element;
  while (holder.children.length === 1) holder = holder.firstElementChild;
  const [first] = holder.children, alike = [...holder.children].slice(0, MAX_ROWS)
    .filter(one => one.localName === first.localName && one.classList[0] === first.classList[0] && textOf(one));
  return alike.length >= LEAST_ROWS && first.classList.length && getComputedStyle(first).display !== "inline" ? alike : [];
};

/* Drawings with a name and no words, which have no button around them. */
const TITLED = "[title]:not([title='']), [aria-label]:not([aria-label=''])";
const iconsOf = element => [...element.querySelectorAll(TITLED)].slice(0, MAX_ROWS).filter(one => textOf(one) === "" &&
  one.closest(INTERACTIVE) === null && one.querySelector(`${INTERACTIVE}, ${TITLED}`) === null);

/* Whether an element listens for its rows and icons, which are then usable in its place, or only for what it holds. */
const delegates = element => {
  if (element.matches(ROWS)) return false;
  const rows = rowsOf(element), icons = iconsOf(element), text = textOf(element);
  const holds = text === "" ? icons.length > 1 : text.length > SHORT_TEXT && element.querySelector(INTERACTIVE) !== null;
  if (rows.length > 0 || holds) for (const one of [...rows, ...icons]) state.held.add(one);
  return rows.length > 0 || holds;
};

/* ---- usable or not ---- */

/* A line of a few pixels with nothing in it; many show what they are for only under the mouse. */
const isStrip = element => {
  const {width, height} = element.getBoundingClientRect();
  return Math.min(width, height) < STRIP && Math.max(width, height) >= 2 * STRIP && element.childElementCount === 0;
};
const areaOf = element => { const {width, height} = element.getBoundingClientRect(); return width * height; };
const same = (element, outer) => {
  const text = textOf(element);
  return text === textOf(outer) && (text !== "" || areaOf(element) >= SAME_AREA * areaOf(outer));
};
const tabbable = element => element.tabIndex >= 0 && element.hasAttribute("tabindex") &&
  element.querySelector(`${INTERACTIVE},[tabindex]`) === null && textOf(element).length <= SHORT_TEXT &&
  (textOf(element) !== "" || element.hasAttribute("aria-label"));

const clickable = (element, tag, style, {outer, editing, pointed}) => {
  if (tag === "body" || tag === "html" || editing || style.pointerEvents === "none") return false;
  if ((NUMBERED.has(tag) && (tag !== "a" || element.hasAttribute("href"))) || (tag === "label" && element.control)) return false;
  if (tag === "video" || tag === "audio") return element.controls;
  const pointer = style.cursor === "pointer", held = state.held.has(element), heard = presses(element) && !isRoot(element);
  const edge = pointer && !pointed;
  if (!heard && !held && !(edge && !element.closest("label")?.control) && element.getAttribute("draggable") !== "true" &&
    !tabbable(element)) return false;
  if (heard && !pointer && !held && delegates(element)) return false;
  // Edges that are drawn to make a column or a window wider.
  if ((style.cursor.endsWith("-resize") || (!pointer && isStrip(element))) && textOf(element) === "") return false;
  return !(outer && same(element, outer)) && !wraps(element) && !frames(element);
};

/* ---- where it lies ---- */

const NOWHERE = {left: 0, top: 0, right: 0, bottom: 0};
const overlap = (box, clip) => clip === null ? box : {left: Math.max(box.left, clip.left), top: Math.max(box.top, clip.top),
  right: Math.min(box.right, clip.right), bottom: Math.min(box.bottom, clip.bottom)};
const shows = ({left, top, right, bottom}, least) => right - left >= least && bottom - top >= least;
const SCROLLS = new Set(["auto", "scroll"]);

/* What the content of an element is cut to, and what that of absolutely placed elements in it is; null is nothing. What
 * a person can scroll cuts nothing. */
const placed = (element, tag, style, {inert, clip: outside, anchored, outer, editing, pointed}) => {
  const {position, overflow} = style;
  let cut = position === "fixed" ? null : position === "absolute" ? anchored : outside;
  const gone = (position === "absolute" || position === "fixed") && /^rect\(0px,? 0px,? 0px,? 0px\)$/.test(style.clip);
  if (gone || /^inset\((50|100)%\)$/.test(style.clipPath)) cut = NOWHERE;
  let clip = cut;
  if (overflow !== "visible" && tag !== "body" && tag !== "html" && style.display !== "inline") {
    const open = overlap(element.getBoundingClientRect(), cut);
    const across = SCROLLS.has(style.overflowX), along = SCROLLS.has(style.overflowY);
    clip = !shows(open, 1) ? NOWHERE : {left: across ? -Infinity : open.left, right: across ? Infinity : open.right,
      top: along ? -Infinity : open.top, bottom: along ? Infinity : open.bottom};
  }
  return {inert: tag === "dialog" && element.matches(":modal") ? false : inert || element.inert === true, cut, clip, outer, editing,
    anchored: position === "static" ? anchored : clip, pointed, points: style.cursor === "pointer"};
};

/* Whether a pointer gets to an element, or to the label of a control. */
const reachable = (element, {inert, cut}) => {
  if (inert) return false;
  const view = element.ownerDocument.defaultView ?? window;
  const there = (box, clip) => {
    const open = overlap(box, clip);
    return shows(open, LEAST_SIZE) && open.right + view.scrollX > 0 && open.bottom + view.scrollY > 0;
  };
  for (const label of element.labels ?? []) if ([...label.getClientRects()].some(box => there(box, null))) return true;
  const holders = [element, ...(element.shadowRoot ?? element).children].slice(0, 20);
  if (holders.some(one => [...one.getClientRects()].some(box => there(box, cut)))) return true;
  // Boxes of their own may lie deeper, in elements that are none (`display: contents`) or lines of text.
  return element.childElementCount > 0 && [...element.querySelectorAll("*")].slice(0, 50)
    .some(one => [...one.getClientRects()].some(box => there(box, cut)));
};
