/* Work that is under way in a document, and documents that are about to be left.
 *
 * Owns the counts of requests, short timers and scripts on their way, what the page may not do by itself (dialogs, file choosers, leaving
 * the task's sites), `settle` and `rest`. Timers that set timers are counted a few links deep only, so that a page that
 * polls is still quiet; frames that ask for frames for half a second, and no more once a document did so for longer. */

const SHORT_TIMER_MS = 300, FRAME_MS = 2000, MAX_CHAIN = 3, MAX_FRAMES = 32, IDLE_TURNS = 3, MAX_OPENED = 8, MAX_ASKED = 100;
const CLICKS = new Set(["click", "mousedown", "mouseup", "pointerdown", "pointerup", "dblclick"]);
const work = {requests: 0, timers: 0, leaving: false, expected: 0, endless: false};

EventTarget.prototype.addEventListener = function (type, listener, options) {
  if (CLICKS.has(type) && this instanceof Element) listening.add(this);
  if (type.startsWith("key")) state.keys = true;
  return addListener.call(this, type, listener, options);
};

/* ---- counting ---- */

const counted = promise => {
  work.requests += 1;
  state.changed = true;
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
  state.changed = true;
  addListener.call(this, "loadend", () => later(() => { work.requests -= 1; }, 0), {once: true});
  return send.apply(this, args);
};

/* Scripts and style sheets that a page asks for while it runs. One that takes longer, or never comes because it was put
 * where nothing is executed, holds up no later step. */
const FETCHED_MS = 2000, FETCHED = /^(stylesheet|modulepreload)$/;
const asked = new Map();
for (const [Kind, name] of [[HTMLScriptElement, "src"], [HTMLLinkElement, "href"]]) {
  const property = Object.getOwnPropertyDescriptor(Kind.prototype, name);
  Object.defineProperty(Kind.prototype, name, {...property, set(address) {
    property.set.call(this, address);
    asked.set(this, now());
    state.changed = true;
  }});
}
for (const type of ["load", "error"]) addListener.call(window, type, ({target}) => {
  if (asked.has(target)) later(() => { asked.delete(target); }, 0);
}, true);
const fetching = () => [...asked].some(([element, since]) => {
  if (now() - since > FETCHED_MS) return void asked.delete(element);
  return element.isConnected && (element.localName === "script" ? !element.noModule : FETCHED.test(element.rel));
});

let chain = 0;
const track = (begin, stop, frames = false) => {
  const set = window[begin], clear = window[stop], pending = new Set();
  window[begin] = function (callback, delay, ...rest) {
    const depth = chain + 1, most = frames && !work.endless ? MAX_FRAMES : MAX_CHAIN;
    state.changed = true;
    if (frames && depth > MAX_FRAMES) work.endless = true;
    if (typeof callback !== "function" || delay > SHORT_TIMER_MS || depth > most) {
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
track("requestAnimationFrame", "cancelAnimationFrame", true);

/* ---- leaving the page ---- */

const refuse = (event, code, url) => {
  event.preventDefault();
  tell(code, url);
  work.expected = 0;
};
if (window.navigation) {
  addListener.call(window.navigation, "navigate", event => {
    work.expected = 0;
    state.changed = true;
    if (event.destination.sameDocument) return;
    const url = event.destination.url;
    if (event.downloadRequest !== null) return refuse(event, "download", url);
    if (state.origins && event.cancelable && !state.origins.includes(new URL(url).origin)) return refuse(event, "refused", url);
    if (event.defaultPrevented) return;
    work.leaving = true;
    if (!outer) state.release?.();
  });
  const intercept = NavigateEvent.prototype.intercept;
  NavigateEvent.prototype.intercept = function (options) { work.leaving = false; return intercept.call(this, options); };
}
const namesFrame = name => [...document.querySelectorAll("iframe[name]")].some(frame => frame.name === name);
const usualTarget = () => document.querySelector("base[target]")?.target ?? "";
const opensTab = target => Boolean(target) && !["_self", "_top", "_parent"].includes(target.toLowerCase()) &&
  !namesFrame(target);
addListener.call(window, "click", event => {
  const link = event.composedPath().find(e => e.localName === "a" && e.href);
  if (link && !event.defaultPrevented && opensTab(link.target || usualTarget())) offer(link.href, event);
});
addListener.call(window, "submit", event => {
  if (event.defaultPrevented) return;
  state.changed = true;
  const posted = (event.submitter?.getAttribute("formmethod") ?? event.target.method).toLowerCase() === "post";
  if (!outer) state.posted = posted;
  const target = event.submitter?.getAttribute("formtarget") || event.target.getAttribute("target") || usualTarget();
  if (opensTab(target)) offer(event.submitter?.getAttribute("formaction") ?? event.target.getAttribute("action") ?? "", event);
  else if (!namesFrame(target)) work.expected = now() + 1000;
});
const offer = (url, event) => {
  const {origin, protocol} = new URL(url, location.href);
  if (protocol === "javascript:") return;
  if (state.origins && !state.origins.includes(origin)) refuse(event, "refused", url); else state.newTab = true;
};
addListener.call(window, "popstate", () => { work.expected = 0; });
addListener.call(document, "invalid", event => { state.invalid ??= event.target; }, true);
const open = window.open;
window.open = function (url, ...rest) {
  const {origin, href} = new URL(url || "about:blank", location.href);
  if (state.origins && href !== "about:blank" && !state.origins.includes(origin)) {
    tell("refused", href);
    return null;
  }
  if ((state.opened += 1) > MAX_OPENED) return null;
  const opened = open.call(window, url, ...rest);
  state.newTab ||= opened !== null;
  // Chromium makes a blank document without this script.
  try { if (opened) mute(opened); } catch { /* of another origin, which has the script or will have it */ }
  return opened;
};

/* ---- what would wait for a person ---- */

/* A person who is asked again and again says no in the end. */
const say = text => { state.asked += 1; tell("dialog", String(text ?? "")); return state.asked <= MAX_ASKED; };
window.alert = text => { say(text); };
window.confirm = text => say(text);
window.prompt = (text, initial) => say(text) ? initial ?? "" : null;

const takesFile = element => element?.localName === "input" && element.type === "file";
const declineFile = () => { tell("file_chooser", ""); };
addListener.call(window, "click", event => {
  if (takesFile(event.composedPath()[0])) { event.preventDefault(); declineFile(); }
}, true);
for (const method of ["click", "showPicker"]) {
  const prototype = method === "click" ? HTMLElement.prototype : HTMLInputElement.prototype;
  const original = prototype[method];
  HTMLInputElement.prototype[method] = function () {
    if (takesFile(this) && (method === "showPicker" || !this.isConnected)) return declineFile();
    return original.call(this);
  };
}
/* A list that drops down would cover the page and take the next input. */
addListener.call(window, "mousedown", event => {
  const list = event.composedPath()[0];
  if (event.isTrusted && list.localName === "select") { event.preventDefault(); list.focus({preventScroll: true}); }
}, true);

/* ---- becoming quiet ---- */

const turn = () => new Promise(resolve => {
  const channel = new MessageChannel();
  channel.port1.onmessage = () => { channel.port1.close(); resolve(); };
  channel.port2.postMessage(0);
});
const pause = ms => new Promise(resolve => { later(resolve, ms); });
/* Whether animations are under way that will end soon; where no frames are drawn they are ended here, one after the
 * other until a step's time is used up. */
const moving = () => {
  const frames = window.__waymarkFrames;
  if (bottomless()) return false;
  if (frames) {
    const spent = frames.advance(state.ahead);
    state.ahead -= spent;
    return spent > 0;
  }
  return document.getAnimations().some(a => {
    const end = a.playState === "running" ? a.effect?.getComputedTiming().endTime : Infinity;
    return end < 2000;
  });
};
const framesOf = view => [...Array(view.length).keys()].map(i => {
  try { return view[i].__waymark ?? null; } catch { return null; }
}).filter(Boolean);
/* Whether a frame's own document is still to come: until then a blank one stands in its place, which is complete. One
 * that takes longer holds up the page's first steps and no later ones. */
const awaited = () => document.readyState !== "complete" && now() < FRAME_MS &&
  [...document.querySelectorAll("iframe[src], iframe[srcdoc], frame[src]")].some(frame => {
    if (!frame.hasAttribute("srcdoc") && !/^https?:/.test(frame.src)) return false;
    try { return frame.contentDocument?.URL === "about:blank"; } catch { return false; }
  });
const busy = () => work.requests > 0 || fetching() || awaited() || work.timers > 0 || document.readyState === "loading" ||
  work.expected > now() || moving() || (Boolean(outer) && work.leaving) || framesOf(window).some(frame => frame.busy());

/* For what is busy to the last: requests and timers come before animations. */
const stir = () => { moving(); for (const frame of framesOf(window)) frame.stir(); };

const settle = async deadline => {
  let idle = 0;
  while (idle < IDLE_TURNS && !work.leaving && now() < deadline) {
    await turn();
    if (busy()) { idle = 0; await pause(2); } else idle += 1;
  }
  if (now() >= deadline) stir();
};

/* For who opens a page only to read it: waits for its load, then until it is quiet and what its scripts draw stands still. A
 * page that draws nothing after its load is not waited for any longer. */
const STILL_MS = 200;
let lastDrawn = -STILL_MS;
const drawWatch = new MutationObserver(() => { lastDrawn = now(); });
const rest = async (load_ms, quiet_ms) => {
  for (const until = now() + load_ms; document.readyState !== "complete" && !work.leaving && now() < until;) await pause(2);
  drawWatch.observe(document, {subtree: true, childList: true, attributes: true, characterData: true});
  const until = now() + quiet_ms;
  state.ahead = quiet_ms;
  for (;;) {
    await settle(until);
    if (work.leaving || now() >= until || now() - lastDrawn >= STILL_MS) break;
    await pause(STILL_MS / 4);
  }
  drawWatch.disconnect();
  return work.leaving ? "leaving" : "quiet";
};
