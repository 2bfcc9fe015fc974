/* Acting by DOM events, which pages can tell from a person's (`isTrusted` is false).
 *
 * Owns what each action does to an element and what it is refused for; every action of `acts` returns a code of
 * `feedback.py`, or "". Used where the settings ask for it, and where no real input exists: choosing from a list,
 * scrolling, travelling, controls that cannot be reached by mouse or keyboard. */

const NOT_TEXT = new Set(["checkbox", "radio", "submit", "button", "reset", "image", "file", "hidden", "range", "color"]);
const BLOCKING = new Set(["text", "search", "url", "tel", "email", "password", "date", "month", "week", "time",
  "datetime-local", "number"]);

/* The focused element, within frames and shadow trees too. */
const focused = () => {
  let found = document.activeElement;
  for (;;) {
    let inner = null;
    try { inner = (found?.shadowRoot ?? found?.contentDocument)?.activeElement ?? null; } catch { inner = null; }
    if (!inner || inner === inner.ownerDocument.body) return found;
    found = inner;
  }
};

const isField = element => element.localName === "textarea" || (element.localName === "input" && !NOT_TEXT.has(element.type));
const isButton = element => ["a", "button", "summary"].includes(element.localName) || (element.localName === "input" &&
  ["submit", "button", "reset", "image", "file"].includes(element.type));

const fire = (element, Kind, type, options) =>
  element.dispatchEvent(new Kind(type, {bubbles: true, cancelable: true, composed: true, ...options}));
const change = element => { fire(element, InputEvent, "input", {inputType: "insertText"}); fire(element, Event, "change"); };

const press = element => {
  const box = element.getBoundingClientRect();
  const at = {view: window, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
  fire(element, PointerEvent, "pointerdown", {...at, buttons: 1});
  if (fire(element, MouseEvent, "mousedown", {...at, buttons: 1})) element.focus?.({preventScroll: true});
  fire(element, PointerEvent, "pointerup", at);
  fire(element, MouseEvent, "mouseup", at);
};

const refusals = {
  click: element => element.matches(":disabled") ? "disabled" : takesFile(element) ? "file" : "",
  type(element) {
    if (state.editors.has(element)) return "";
    if (!isField(element) && !element.isContentEditable) return "not_text";
    if (element.matches(":disabled")) return "disabled";
    return element.readOnly ? "read_only" : "";
  },
  select: element => element.localName !== "select" ? "not_select" : element.matches(":disabled") ? "disabled" : "",
};

const acts = {
  click(element) {
    const code = refusals.click(element);
    if (code) return code;
    if (element.controls) { if (element.paused) element.play().catch(() => {}); else element.pause(); return ""; }
    press(element);
    element.click();
    return "";
  },
  right_click(element) {
    press(element);
    fire(element, MouseEvent, "contextmenu", {button: 2, buttons: 2});
    return "";
  },
  hover(element) {
    element.scrollIntoView({block: "center", behavior: "instant"});
    for (const type of ["pointerover", "pointerenter", "pointermove"]) fire(element, PointerEvent, type);
    for (const type of ["mouseover", "mouseenter", "mousemove"]) fire(element, MouseEvent, type, {view: window});
    return "";
  },
  drag(element, number) {
    const target = state.refs[Number(number)], data = new DataTransfer();
    if (!target?.isConnected) return "gone";
    const at = one => {
      const box = one.getBoundingClientRect();
      return {view: window, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2, buttons: 1};
    };
    const held = element.closest("[draggable=true]");
    for (const [one, Kind, type] of [[element, PointerEvent, "pointerdown"], [element, MouseEvent, "mousedown"],
      ...(held ? [[held, DragEvent, "dragstart"], [target, DragEvent, "dragenter"], [target, DragEvent, "dragover"], [target, DragEvent, "drop"], [held, DragEvent, "dragend"]] :
        [[target, PointerEvent, "pointermove"], [target, MouseEvent, "mousemove"]]),
      [target, PointerEvent, "pointerup"], [target, MouseEvent, "mouseup"]]) {
      fire(one, Kind, type, Kind === DragEvent ? {...at(one), dataTransfer: data} : at(one));
    }
    return "";
  },
  type(chosen, text) {
    const code = refusals.type(chosen), element = state.editors.get(chosen) ?? chosen;
    if (code) return code;
    element.focus?.({preventScroll: true});
    if (!isField(element)) {
      element.ownerDocument.getSelection().selectAllChildren(element);
      element.ownerDocument.execCommand("insertText", false, text);
      return "";
    }
    const wanted = element.maxLength >= 0 ? text.slice(0, element.maxLength) : text;
    const owner = element.localName === "textarea" ? HTMLTextAreaElement : HTMLInputElement;
    const key = wanted.slice(-1) || "Delete";
    fire(element, KeyboardEvent, "keydown", {key});
    Object.getOwnPropertyDescriptor(owner.prototype, "value").set.call(element, wanted);
    change(element);
    fire(element, KeyboardEvent, "keyup", {key});
    return wanted && !element.value ? "not_accepted" : "";
  },
  search(element, text) { return acts.type(element, text) || acts.press_enter(element); },
  select(element, wanted) {
    const code = refusals.select(element);
    if (code) return code;
    element.focus({preventScroll: true});
    const squeeze = text => text.split(/\s+/u).filter(Boolean).join(" ").toLowerCase();
    const options = [...element.options], part = squeeze(wanted);
    const having = part ? options.filter(o => squeeze(o.label).includes(part)) : [];
    const index = [
      options.findIndex(o => o.label === wanted),
      options.findIndex(o => squeeze(o.label) === part),
      options.findIndex(o => o.value === wanted),
      having.length === 1 ? options.indexOf(having[0]) : -1,
    ].find(i => i >= 0);
    if (index === undefined) return "no_option";
    element.selectedIndex = index;
    fire(element, Event, "input");
    fire(element, Event, "change");
    return "";
  },
  press_enter(element) {
    const target = element ?? focused();
    if (!target || target === document.body) return "no_focus";
    target.focus?.({preventScroll: true});
    const key = {key: "Enter", code: "Enter", keyCode: 13, which: 13};
    const proceed = fire(target, KeyboardEvent, "keydown", key) && fire(target, KeyboardEvent, "keypress", key);
    const code = proceed ? enter(target) : "";
    fire(target, KeyboardEvent, "keyup", key);
    return code;
  },
  press_key(element, keys) {
    const held = keys.split("+"), key = held.pop(), holds = name => held.some(one => one.toLowerCase().startsWith(name));
    const target = element ?? focused() ?? document.body;
    target.focus?.({preventScroll: true});
    const told = {key, ctrlKey: holds("c"), shiftKey: holds("s"), altKey: holds("a"), metaKey: holds("m")};
    for (const type of ["keydown", "keyup"]) fire(target, KeyboardEvent, type, told);
    return "";
  },
  scroll(down) {
    const before = scrollY;
    window.scrollBy({top: (down ? 0.8 : -0.8) * innerHeight, behavior: "instant"});
    return before === scrollY ? "scroll_end" : "";
  },
  scroll_up() { return acts.scroll(false); },
  scroll_down() { return acts.scroll(true); },
  travel(delta, posted) {
    const target = window.navigation?.entries()[window.navigation.currentEntry.index + delta];
    if (target && posted.includes(target.key)) return "resubmit";
    work.expected = now() + 1000;
    history.go(delta);
    return "";
  },
  go_backward(_, posted) { return acts.travel(-1, posted); },
  go_forward(_, posted) { return acts.travel(1, posted); },
  wait() { return ""; },
};

/* How Enter in a field sends its form: {button}, {form}, or nothing where it does not. */
const submission = target => {
  const form = target.localName === "input" ? target.form : null;
  if (!form) return {};
  const members = [...form.elements];
  const button = members.find(e => e.type === "submit") ?? form.querySelector("input[type=image]");
  if (button) return {button};
  return members.filter(e => e.localName === "input" && BLOCKING.has(e.type)).length > 1 ? {} : {form};
};
const unsent = target => {
  if (isButton(target) || target.localName === "textarea" || target.isContentEditable) return "";
  const {button, form} = submission(target);
  return button || form || (state.keys && !target.form) ? "" : "no_submit";
};

/* Enter's default action. */
const enter = target => {
  if (isButton(target)) return acts.click(target);
  if (target.localName === "textarea") {
    target.setRangeText("\n", target.value.length, target.value.length, "end");
    change(target);
    return "";
  }
  const {button, form} = submission(target);
  if (button && !button.matches(":disabled")) button.click();
  if (form) form.requestSubmit();
  return unsent(target);
};

const targetOf = action => {
  const element = action.n === null ? null : state.refs[action.n];
  const shown = element?.localName === "area" ? pictureOf(element) : element;
  const gone = action.n !== null && !(element?.isConnected && shown?.checkVisibility({visibilityProperty: true}));
  return {element, gone};
};

const perform = action => {
  const {element, gone} = targetOf(action);
  if (gone) return "gone";
  return action.kind.startsWith("scroll") ? acts[action.kind]() : acts[action.kind](element, action.argument ?? "");
};
