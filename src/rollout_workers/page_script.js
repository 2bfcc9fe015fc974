/* The one script that Waymark runs in a page: acts, waits until the page is quiet, reports what is visible.
 *
 * Installed before any script of the page. Owns the references to elements (`refs`, by number), the counts of
 * work under way, and the facts of `snapshot.py`; decides nothing about how a page is shown. `step` resolves
 * to JSON, either {navigating: true} when another document is on its way, or a snapshot. Codes are those of
 * `notices.py`. */
(() => {
  if (window.__waymark) return;

  const KEPT = ["id", "for", "type", "role", "name", "title", "alt", "placeholder", "aria-label", "contenteditable"];
  const SKIPPED = new Set(("head script style template noscript datalist svg canvas video audio object embed option optgroup " +
    "title link meta base param source track area map").split(" "));
  const NUMBERED = new Set(["a", "button", "input", "select", "textarea", "summary"]);
  const INTERACTIVE = "a[href],button,input,select,textarea,summary,[role=button],[role=link],[role=tab],[role=menuitem]";
  const CLICKS = new Set(["click", "mousedown", "mouseup", "pointerdown", "pointerup", "dblclick"]);
  const NOT_TEXT = new Set(["checkbox", "radio", "submit", "button", "reset", "image", "file", "hidden", "range", "color"]);
  const BLOCKING = new Set(["text", "search", "url", "tel", "email", "password", "date", "month", "week", "time",
    "datetime-local", "number"]);
  const MAX_DEPTH = 150, SHORT_TIMER_MS = 300, MAX_CHAIN = 3, IDLE_TURNS = 3;

  const listening = new WeakSet();
  const now = performance.now.bind(performance);
  const later = window.setTimeout.bind(window);
  const work = {requests: 0, timers: 0};
  const state = {refs: [], leaving: false, expected: 0, newTab: false, posted: false, notices: [], invalid: null, keys: false,
    origins: null, numbers: null};

  /* ---- counting work under way ---- */

  const addListener = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (type, listener, options) {
    if (CLICKS.has(type) && this instanceof Element) listening.add(this);
    if (type.startsWith("key")) state.keys = true;
    return addListener.call(this, type, listener, options);
  };

  const counted = promise => {
    work.requests += 1;
    const done = () => later(() => { work.requests -= 1; }, 0);
    promise.then(done, done);
    return promise;
  };
  if (window.fetch) {
    const fetch = window.fetch;
    window.fetch = function (...args) { return counted(fetch.apply(this, args)); };
    for (const name of ["json", "text", "blob", "arrayBuffer", "formData"]) {
      const read = Response.prototype[name];
      Response.prototype[name] = function () { return counted(read.call(this)); };
    }
  }
  const send = XMLHttpRequest.prototype.send;
  XMLHttpRequest.prototype.send = function (...args) {
    work.requests += 1;
    addListener.call(this, "loadend", () => later(() => { work.requests -= 1; }, 0), {once: true});
    return send.apply(this, args);
  };

  /* Timers that set timers are counted a few links deep only, so that a page that polls is still quiet. */
  let chain = 0;
  const track = (start, stop) => {
    const set = window[start], clear = window[stop], pending = new Set();
    window[start] = function (callback, delay, ...rest) {
      const depth = chain + 1;
      if (typeof callback !== "function" || delay > SHORT_TIMER_MS || depth > MAX_CHAIN) {
        return set.call(window, callback, delay, ...rest);
      }
      const id = set.call(window, (...given) => {
        if (pending.delete(id)) work.timers -= 1;
        chain = depth;
        try { callback.apply(window, given); } finally { chain = 0; }
      }, delay, ...rest);
      pending.add(id);
      work.timers += 1;
      return id;
    };
    window[stop] = function (id) {
      if (pending.delete(id)) work.timers -= 1;
      clear.call(window, id);
    };
  };
  track("setTimeout", "clearTimeout");
  track("requestAnimationFrame", "cancelAnimationFrame");

  /* ---- leaving the page ---- */

  const refuse = (event, code, url) => {
    event.preventDefault();
    state.notices.push({code, detail: url});
    state.expected = 0;
  };
  if (window.navigation) {
    addListener.call(window.navigation, "navigate", event => {
      state.expected = 0;
      if (event.destination.sameDocument) return;
      const url = event.destination.url;
      if (event.downloadRequest !== null) return refuse(event, "download", url);
      if (state.origins && event.cancelable && !state.origins.includes(new URL(url).origin)) return refuse(event, "refused", url);
      if (!event.defaultPrevented) state.leaving = true;
    });
    const intercept = NavigateEvent.prototype.intercept;
    NavigateEvent.prototype.intercept = function (options) { state.leaving = false; return intercept.call(this, options); };
  }
  const opensTab = target => Boolean(target) && !["_self", "_top", "_parent"].includes(target.toLowerCase());
  addListener.call(window, "click", event => {
    const link = event.composedPath().find(e => e.localName === "a" && e.href);
    if (link && !event.defaultPrevented && opensTab(link.target)) offer(link.href, event);
  });
  addListener.call(window, "submit", event => {
    if (event.defaultPrevented) return;
    state.posted = (event.submitter?.getAttribute("formmethod") ?? event.target.method).toLowerCase() === "post";
    const target = event.submitter?.getAttribute("formtarget") || event.target.getAttribute("target");
    if (opensTab(target)) state.newTab = true; else state.expected = now() + 1000;
  });
  const offer = (url, event) => {
    const {origin, protocol} = new URL(url, location.href);
    if (protocol === "javascript:") return;
    if (state.origins && !state.origins.includes(origin)) refuse(event, "refused", url); else state.newTab = true;
  };
  addListener.call(window, "popstate", () => { state.expected = 0; });
  addListener.call(document, "invalid", event => { state.invalid ??= event.target; }, true);
  const open = window.open;
  window.open = function (url, ...rest) {
    const {origin, href} = new URL(url || "about:blank", location.href);
    if (state.origins && href !== "about:blank" && !state.origins.includes(origin)) {
      state.notices.push({code: "refused", detail: href});
      return null;
    }
    const opened = open.call(window, url, ...rest);
    state.newTab ||= opened !== null;
    return opened;
  };
  const say = text => { state.notices.push({code: "dialog", detail: String(text ?? "")}); };
  window.alert = say;
  window.confirm = text => { say(text); return true; };
  window.prompt = (text, initial) => { say(text); return initial ?? ""; };

  /* ---- acting ---- */

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

  const acts = {
    click(element) {
      if (element.matches(":disabled")) return "disabled";
      if (element.localName === "input" && element.type === "file") return "file";
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
    type(element, text) {
      const field = element.localName === "textarea" || (element.localName === "input" && !NOT_TEXT.has(element.type));
      if (!field && !element.isContentEditable) return "not_text";
      if (element.matches(":disabled")) return "disabled";
      if (element.readOnly) return "read_only";
      element.focus?.({preventScroll: true});
      if (!field) {
        document.getSelection().selectAllChildren(element);
        document.execCommand("insertText", false, text);
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
      if (element.localName !== "select") return "not_select";
      if (element.matches(":disabled")) return "disabled";
      element.focus({preventScroll: true});
      const squeeze = text => text.split(/\s+/u).filter(Boolean).join(" ").toLowerCase();
      const options = [...element.options];
      const index = [
        options.findIndex(o => o.label === wanted),
        options.findIndex(o => squeeze(o.label) === squeeze(wanted)),
        options.findIndex(o => o.value === wanted),
      ].find(i => i >= 0);
      if (index === undefined) return "no_option";
      element.selectedIndex = index;
      fire(element, Event, "input");
      fire(element, Event, "change");
      return "";
    },
    press_enter(element) {
      const target = element ?? document.activeElement;
      if (!target || target === document.body) return "no_focus";
      target.focus?.({preventScroll: true});
      const key = {key: "Enter", code: "Enter", keyCode: 13, which: 13};
      const proceed = fire(target, KeyboardEvent, "keydown", key) && fire(target, KeyboardEvent, "keypress", key);
      const code = proceed ? enter(target) : "";
      fire(target, KeyboardEvent, "keyup", key);
      return code;
    },
    scroll(down) {
      const before = [scrollX, scrollY];
      window.scrollBy({top: (down ? 0.8 : -0.8) * innerHeight, behavior: "instant"});
      return before[1] === scrollY ? "scroll_end" : "";
    },
    scroll_up() { return acts.scroll(false); },
    scroll_down() { return acts.scroll(true); },
    travel(delta, posted) {
      const target = window.navigation?.entries()[window.navigation.currentEntry.index + delta];
      if (target && posted.includes(target.key)) return "resubmit";
      state.expected = now() + 1000;
      history.go(delta);
      return "";
    },
    go_backward(_, posted) { return acts.travel(-1, posted); },
    go_forward(_, posted) { return acts.travel(1, posted); },
    wait() { return ""; },
  };

  /* Enter's default action. */
  const enter = target => {
    const button = NOT_TEXT.has(target.type) && !["checkbox", "radio", "range", "color"].includes(target.type);
    if (["a", "button", "summary"].includes(target.localName) || (target.localName === "input" && button)) {
      return acts.click(target);
    }
    if (target.localName === "textarea") {
      target.setRangeText("\n", target.value.length, target.value.length, "end");
      change(target);
      return "";
    }
    const form = target.localName === "input" ? target.form : null;
    if (!form) return state.keys ? "" : "no_submit";
    const members = [...form.elements];
    const submitter = members.find(e => e.type === "submit") ?? form.querySelector("input[type=image]");
    if (submitter) { if (!submitter.matches(":disabled")) submitter.click(); return ""; }
    if (members.filter(e => e.localName === "input" && BLOCKING.has(e.type)).length > 1) return "no_submit";
    form.requestSubmit();
    return "";
  };

  const perform = action => {
    let element = null;
    if (action.n !== null) {
      element = state.refs[action.n];
      const gone = !element || !element.isConnected || !element.checkVisibility({visibilityProperty: true});
      if (gone) return "gone";
    }
    return action.kind.startsWith("scroll") ? acts[action.kind]() : acts[action.kind](element, action.argument ?? "");
  };

  /* ---- becoming quiet ---- */

  const turn = () => new Promise(resolve => {
    const channel = new MessageChannel();
    channel.port1.onmessage = () => { channel.port1.close(); resolve(); };
    channel.port2.postMessage(0);
  });
  const pause = ms => new Promise(resolve => { later(resolve, ms); });
  const moving = () => document.getAnimations().some(a => {
    const end = a.playState === "running" ? a.effect?.getComputedTiming().endTime : Infinity;
    return end < 2000;
  });
  const busy = () => work.requests > 0 || work.timers > 0 || document.readyState === "loading" ||
    state.expected > now() || moving();

  const settle = async deadline => {
    let idle = 0;
    while (idle < IDLE_TURNS && !state.leaving && now() < deadline) {
      await turn();
      if (busy()) { idle = 0; await pause(2); } else idle += 1;
    }
  };

  /* ---- seeing ---- */

  const facts = (element, inside, options) => {
    const tag = element.localName, found = {};
    for (const name of KEPT) {
      const value = element.getAttribute(name);
      if (value !== null) found[name] = value;
    }
    if (element.hasAttribute("href")) found.href = "";
    const referred = element.getAttribute("aria-labelledby");
    if (referred) {
      const texts = referred.split(/\s+/).map(id => element.ownerDocument.getElementById(id)).filter(Boolean);
      if (texts.length) found.labelledby = texts.map(e => e.textContent).join(" ");
    }
    if (tag === "input" || tag === "textarea") {
      if (tag === "input") found.type = element.type;
      found.value = element.type === "password" && element.value ? "*" : element.value;
      if (["checkbox", "radio"].includes(element.type) && element.checked) found.checked = true;
    } else if (tag === "select") {
      found.options = [...element.options].map(o => o.label);
      found.selected = [...element.selectedOptions].map(o => o.label);
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

  const childrenOf = element => {
    if (element.localName === "iframe") {
      let inner = null;
      try { inner = element.contentDocument?.body; } catch { inner = null; }
      return inner ? [inner] : [];
    }
    if (element.localName === "slot" && element.assignedNodes().length) return element.assignedNodes();
    return (element.shadowRoot ?? element).childNodes;
  };

  const visit = (element, parent, depth, inside, options) => {
    const tag = element.localName;
    if (SKIPPED.has(tag)) return;
    const style = getComputedStyle(element);
    if (style.display === "none" || (tag === "input" && element.type === "hidden")) return;
    const seen = style.visibility === "visible" && (!options.viewport_only || inView(element));
    const isControl = NUMBERED.has(tag) || element.hasAttribute("role");
    const node = [tag, seen || !isControl ? facts(element, inside, options) : {}];
    const list = depth < MAX_DEPTH || node[1].n !== undefined ? node : parent;
    if (!seen && isControl && (tag === "input" || tag === "select" || tag === "textarea")) return;
    if (!seen && isControl) node[0] = "span";
    parent.push(node);
    if (tag === "select" || tag === "textarea") return;
    const within = inside || tag === "a" || tag === "button" || tag === "summary" || node[1].clickable === true;
    const summary = tag === "details" && !element.open ? element.querySelector(":scope > summary") : null;
    if (tag === "details" && !element.open) { if (summary) visit(summary, list, depth + 1, within, options); return; }
    for (const child of childrenOf(element)) {
      if (child.nodeType === 1) visit(child, list, depth + 1, within, options);
      else if (child.nodeType === 3 && seen) list.push(child.data.replace(/[ \t\n\r\f]+/g, " "));
    }
  };

  const look = options => {
    const view = options.webrl ? window.__waymarkView() : null, holder = [];
    Object.assign(state, {refs: [], numbers: view?.numbers});
    if (document.body) visit(document.body, holder, 0, false, options);
    if (view) state.refs = view.elements;
    const entry = performance.getEntriesByType("navigation")[0];
    return {url: location.href, title: document.title, root: holder[0] ?? ["body", {}], tree: view?.tree, window: view?.window,
      status: entry?.responseStatus ?? 0, redirects: entry?.redirectCount ?? 0, entry: window.navigation?.currentEntry?.key ?? ""};
  };

  const step = async (action, options) => {
    Object.assign(state, {leaving: false, expected: 0, newTab: false, posted: false, notices: [], invalid: null,
      origins: options.origins});
    const code = action ? perform(action) : "";
    await settle(now() + options.settle_ms);
    const invalid = state.invalid === null ? -1 : state.refs.indexOf(state.invalid);
    const result = {code, invalid, new_tab: state.newTab, posted: state.posted, notices: state.notices,
      navigating: state.leaving};
    if (!state.leaving && !state.newTab) Object.assign(result, look(options));
    return JSON.stringify(result);
  };

  const centre = n => {
    const box = state.refs[n].getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2];
  };

  Object.defineProperty(window, "__waymark", {value: Object.freeze({step, centre})});
})();
