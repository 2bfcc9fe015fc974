/* What the browser must do with mouse and keyboard for an action.
 *
 * Owns `plan`: the element is scrolled into view and its middle hit-tested, or it is given the focus, and the
 * input is listed for `browser_input.py`: {move: [x, y]}, {press: [x, y], button}, {text}, {key}. Where no input can
 * reach the element the action is done by DOM events; where something else lies over it the code is "covered". */

const middle = box => [(Math.max(box.left, 0) + Math.min(box.right, innerWidth)) / 2,
  (Math.max(box.top, 0) + Math.min(box.bottom, innerHeight)) / 2];

/* The picture that an area is a part of, and the box around the area there. */
const pictureOf = area => [...area.ownerDocument.images].find(one => one.useMap && one.useMap === `#${area.closest("map")?.name}`);
const boxOfArea = area => {
  const {left, top, width, height} = pictureOf(area).getBoundingClientRect();
  const at = area.coords.split(",").map(Number), [x, y, radius] = at;
  if (area.shape === "circle") return new DOMRect(left + x - radius, top + y - radius, 2 * radius, 2 * radius);
  if (area.shape === "default" || at.length < 4) return new DOMRect(left, top, width, height);
  const across = at.filter((_, i) => i % 2 === 0), along = at.filter((_, i) => i % 2);
  const [west, north] = [Math.min(...across), Math.min(...along)];
  return new DOMRect(left + west, top + north, Math.max(...across) - west, Math.max(...along) - north);
};

/* The boxes to aim at: the element's own, its labels', then what is inside it. */
const boxesOf = element => {
  if (element.localName === "area") return [boxOfArea(element)];
  const sources = [element, ...(element.labels ?? []), ...[...element.children].slice(0, 8)];
  return sources.flatMap(e => [...e.getClientRects()]).filter(box => box.width >= 1 && box.height >= 1);
};

const above = node => node.assignedSlot ?? node.parentNode ?? node.host ?? null;
const within = (node, element) => {
  for (let up = node; up; up = above(up)) {
    if (up === element || (up.localName === "label" && up.control === element)) return true;
  }
  return false;
};

/* Whether what is hit is a part of the element. Text that a component puts into a slot is hit as its host. */
const reaches = (hit, element) => within(hit, element) ||
  (hit.shadowRoot !== null && [...hit.childNodes].some(one => one.nodeType === 3 && one.assignedSlot && within(one, element)));

/* The element at a point of its own window, within open shadow trees too. */
const topmost = (root, x, y) => {
  let found = root.elementFromPoint(x, y);
  while (found?.shadowRoot) {
    const inner = found.shadowRoot.elementFromPoint(x, y);
    if (!inner || inner === found) break;
    found = inner;
  }
  return found;
};

/* The frames around an element from the innermost on, each with where its content begins in the window around it. */
const framesAround = element => {
  const found = [];
  const around = node => node.ownerDocument.defaultView?.frameElement;
  for (let frame = around(element); frame; frame = around(frame)) {
    const box = frame.getBoundingClientRect(), style = getComputedStyle(frame);
    found.push([frame, box.left + frame.clientLeft + parseFloat(style.paddingLeft),
      box.top + frame.clientTop + parseFloat(style.paddingTop)]);
  }
  return found;
};

/* Where to press so that it reaches the element: {at: [x, y]}, {cover: element}, or {} where nothing shows of it. */
const aim = element => {
  const view = element.ownerDocument.defaultView;
  const inside = ([x, y]) => x >= 0 && y >= 0 && x < view.innerWidth && y < view.innerHeight;
  const whole = element.getBoundingClientRect();
  if (whole.top < 0 || whole.bottom > view.innerHeight || whole.left < 0 || whole.right > view.innerWidth ||
    view !== window) element.scrollIntoView({block: "center", inline: "nearest", behavior: "instant"});
  let cover = null;
  for (const box of boxesOf(element)) {
    let [x, y] = view === window ? middle(box) : [(box.left + box.right) / 2, (box.top + box.bottom) / 2];
    if (!inside([x, y])) continue;
    let hit = topmost(element.ownerDocument, x, y), wanted = element, reached = Boolean(hit) && reaches(hit, element);
    for (const [frame, left, top] of framesAround(element)) {
      if (!reached) break;
      [x, y, wanted] = [x + left, y + top, frame];
      hit = topmost(frame.ownerDocument, x, y);
      reached = Boolean(hit) && within(hit, wanted);
    }
    if (reached) return {at: [x, y]};
    if (hit && !hit.contains(wanted)) cover ??= hit;
  }
  return cover ? {cover} : {};
};

/* The whole of what lies over an element, in a few words. */
const wording = (cover, element) => {
  let whole = cover;
  for (let up = cover; up && !up.contains?.(element) && up.localName !== "body"; up = above(up)) if (up.localName) whole = up;
  const name = whole.getAttribute("aria-label") || whole.title || whole.innerText || whole.id;
  const kind = whole.getAttribute("role") || whole.localName;
  return `${kind} ${(name ?? "").replace(/\s+/g, " ").trim().slice(0, 60)}`.trim();
};

const byMouse = (element, input, byKey, otherwise) => {
  const {at, cover} = aim(element);
  if (at) return {input: input(at)};
  if (cover) return {code: "covered", detail: wording(cover, element)};
  return byKey && takesFocus(element) ? {input: [{key: byKey}]} : {code: otherwise(element)};
};

const takesFocus = element => {
  element.focus?.({preventScroll: true});
  return focused() === element;
};

const STRICT = new Set(["number"]), WHOLES = new Set(["date", "month", "week", "time", "datetime-local"]);
const accepts = (element, text) => {
  if (!STRICT.has(element.type)) return true;
  const probe = element.cloneNode();
  probe.value = text;
  return probe.value !== "";
};

/* Whether anybody hears the keys that are pressed in a field. */
const keysHeard = field => {
  const heard = at => Boolean(at.onkeydown || at.onkeypress || at.onkeyup);
  let up = field;
  while (up && !heard(up)) up = above(up);
  return state.keys || up !== null || heard(field.ownerDocument.defaultView);
};

/* The last character is a key where someone hears it: text alone changes a field in the same way, in half the time. */
const writing = (text, heard) => {
  if (text && !heard) return [{text}];
  const key = /[\x20-\x7e]$/.test(text) ? text.slice(-1) : "";
  const before = key ? text.slice(0, -1) : text;
  return [...(before ? [{text: before}] : []), {key: key || (text ? "Unidentified" : "Delete")}];
};

/* Where to let go: in a list the place of an element is taken when the pointer is past its middle. */
const landing = (element, target, [x, y]) => {
  const {left, top, width, height} = target.getBoundingClientRect(), before = element.compareDocumentPosition(target) & Node.DOCUMENT_POSITION_PRECEDING;
  if (element.parentElement !== target.parentElement) return [x, y];
  const along = Math.abs(element.getBoundingClientRect().top - top) > Math.abs(element.getBoundingClientRect().left - left);
  const part = before ? 0.25 : 0.75;
  return along ? [x, top + part * height] : [left + part * width, y];
};

const plans = {
  click(element) {
    const code = refusals.click(element);
    if (code) return {code};
    if (element.controls) return takesFocus(element) ? {input: [{key: " "}]} : {code: acts.click(element)};
    const tick = element.localName === "input" && ["checkbox", "radio"].includes(element.type);
    return byMouse(element, at => [{press: at, button: "left"}], tick ? " " : isButton(element) ? "Enter" : "", acts.click);
  },
  right_click: element => byMouse(element, at => [{press: at, button: "right"}], "", acts.right_click),
  hover: element => byMouse(element, at => [{move: at}], "", acts.hover),
  drag(element, number) {
    const target = state.refs[Number(number)];
    if (!target?.isConnected) return {code: "gone"};
    // What is brought into view last may push the other out of it.
    let [from, to] = [aim(element), aim(target)];
    if (from.at && to.at) [from, to] = [aim(element), aim(target)];
    const cover = from.cover ?? to.cover;
    if (cover) return {code: "covered", detail: wording(cover, from.cover ? element : target)};
    const there = from.at && topmost(document, ...from.at);
    if (!from.at || !to.at || !there || !reaches(there, element)) return {code: acts.drag(element, number)};
    return {input: [{drag: from.at, to: landing(element, target, to.at)}]};
  },
  type(element, text) {
    const code = refusals.type(element);
    if (code) return {code};
    const sink = state.editors.get(element) ?? (element.isContentEditable ? element : null);
    // An editor keeps its own selection, which only its keys move.
    if (sink && takesFocus(sink)) return {input: [{key: "SelectAll"}, ...writing(text.replace(/\r\n?/g, "\n"), true)], after: () => ""};
    const field = isField(element);
    let wanted = field && element.localName === "input" ? text.replace(/[\r\n]/g, "") : text.replace(/\r\n?/g, "\n");
    if (field && element.maxLength >= 0) wanted = wanted.slice(0, element.maxLength);
    const whole = WHOLES.has(element.type) || (wanted && !accepts(element, wanted));
    if (whole || !takesFocus(element)) return {code: acts.type(element, wanted)};
    if (field) element.select(); else element.ownerDocument.getSelection().selectAllChildren(element);
    return {input: writing(wanted, !field || keysHeard(element)), after: () => field && wanted && !element.value ? "not_accepted" : ""};
  },
  search(element, text) {
    const typed = plans.type(element, text);
    if (typed.code) return typed;
    if (!typed.input) return plans.press_enter(element);
    const code = unsent(element);
    return {input: [...typed.input, {key: "Enter"}], after: () => typed.after() || code};
  },
  press_key(chosen, keys) {
    if (chosen) takesFocus(state.editors.get(chosen) ?? chosen);
    return {input: [{key: keys}]};
  },
  press_enter(chosen) {
    const element = state.editors.get(chosen) ?? chosen;
    const target = element ?? focused();
    if (!target || target === document.body) return {code: "no_focus"};
    if (takesFile(target)) return {code: "file"};
    if (target.localName === "select" || !takesFocus(target)) return {code: acts.press_enter(target)};
    if (target.localName === "textarea") target.setSelectionRange(target.value.length, target.value.length);
    const code = unsent(target);
    return {input: [{key: "Enter"}], after: () => code};
  },
};

const plan = action => {
  const {element, gone} = targetOf(action);
  return gone ? {code: "gone"} : plans[action.kind](element, action.argument ?? "");
};
