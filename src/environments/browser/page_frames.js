/* What stands in for frames where Chromium draws none: a page that waits for one would wait forever.
 *
 * Owns the timers in place of frames and idle moments, and `advance`, which ends animations in their order, sends
 * their events and has told what observers of the page would be told by a frame. Pages hear each event once: should Chromium draw all the same, `advance` goes with the first frame, and
 * what this frame would say again is silenced. */

const FRAME_MS = 16, IDLE_MS = 50, TOLD_MS = 1000;
const later = window.setTimeout.bind(window), now = performance.now.bind(performance);
const onFrame = window.requestAnimationFrame.bind(window);
onFrame(() => {
  delete window.__waymarkFrames;
  later(() => { told = new WeakMap(); }, TOLD_MS);
  const each = () => { tellObservers(); onFrame(each); };
  each();
});
window.requestAnimationFrame = callback => later(() => callback(performance.now()), FRAME_MS);
window.cancelAnimationFrame = window.clearTimeout.bind(window);

const {dispatchEvent: dispatch, addEventListener: addListener} = EventTarget.prototype;
const {attachShadow: attach, animate} = Element.prototype;
const ofDocument = Document.prototype.getAnimations, ofShadow = ShadowRoot.prototype.getAnimations;
const {finish, play} = Animation.prototype;

/* Moments between frames never come, and a view transition waits for a frame before it changes anything. */
window.requestIdleCallback = callback => window.setTimeout(() => {
  const ends = now() + IDLE_MS;
  callback({didTimeout: false, timeRemaining: () => Math.max(0, ends - now())});
});
window.cancelIdleCallback = id => window.clearTimeout(id);
delete Document.prototype.startViewTransition;
delete Element.prototype.startViewTransition;

/* ---- which animations run; a document does not list those in its shadow trees ---- */

let shadows = [];
Element.prototype.attachShadow = function (options) {
  const shadow = attach.call(this, options);
  shadows.push(new WeakRef(shadow));
  watch(shadow);
  return shadow;
};
const running = () => {
  shadows = shadows.filter(shadow => shadow.deref());
  const shown = shadows.map(shadow => shadow.deref()).filter(shadow => shadow?.isConnected);
  const all = [...ofDocument.call(document), ...shown.flatMap(shadow => ofShadow.call(shadow))];
  return all.filter(one => one.playState === "running" && one.playbackRate && one.timeline instanceof DocumentTimeline);
};
/* What turns round is listed at once, not from the next frame on. */
Animation.prototype.reverse = function () { this.playbackRate *= -1; play.call(this); };

/* ---- their events ---- */

const KINDS = [
  {of: CSSTransition, Event: TransitionEvent, begin: ["transitionrun", "transitionstart"], end: ["transitionend"],
    names: one => ({propertyName: one.transitionProperty})},
  {of: CSSAnimation, Event: AnimationEvent, begin: ["animationstart"], end: ["animationend"],
    names: one => ({animationName: one.animationName})},
];
/* What was said here is not said again by a frame that was merely late: each of these silences one event of its own. */
let told = new WeakMap();
const key = ({type, propertyName, animationName, pseudoElement}) =>
  [type, propertyName ?? animationName, pseudoElement].join("|");
const silence = event => {
  if (event.isTrusted && told.get(event.composedPath()[0])?.delete(key(event))) event.stopImmediatePropagation();
};
const watch = root => {
  for (const {begin, end} of KINDS) for (const type of [...begin, ...end]) addListener.call(root, type, silence, true);
};
watch(window);
/* An animation's listeners are called in the order in which they came, so the one that silences comes first. */
const ended = new WeakSet();
Element.prototype.animate = function (...given) {
  const animation = animate.apply(this, given);
  addListener.call(animation, "finish", event => {
    if (event.isTrusted && ended.delete(animation)) event.stopImmediatePropagation();
  });
  return animation;
};
const send = (animation, moment, elapsedTime) => {
  const kind = KINDS.find(one => animation instanceof one.of), {target, pseudoElement} = animation.effect;
  for (const type of target && kind?.[moment] || []) {
    const what = {...kind.names(animation), elapsedTime, pseudoElement: pseudoElement ?? ""};
    const event = new kind.Event(type, {bubbles: true, cancelable: true, ...what});
    told.set(target, (told.get(target) ?? new Set()).add(key(event)));
    dispatch.call(target, event);
  }
};
const end = animation => {
  const {activeDuration} = animation.effect.getComputedTiming();
  begun.delete(animation);
  finish.call(animation);
  ended.add(animation);
  send(animation, "end", activeDuration / 1000);
  dispatch.call(animation, new AnimationPlaybackEvent("finish", {currentTime: animation.currentTime}));
};

/* ---- their time ---- */

const begun = new WeakMap();
const left = animation => {
  const {playbackRate, currentTime} = animation, {endTime} = animation.effect.getComputedTiming();
  const whole = playbackRate > 0 ? (endTime - currentTime) / playbackRate : -currentTime / playbackRate;
  return whole - (now() - begun.get(animation));
};

/* Ends what would end within `ms` from now, and returns how many of them that took; 0 where there was nothing. What
 * takes longer ends once its time has passed, and what has no end is left alone. */
const advance = ms => {
  if (ms <= 0) return 0;
  const seen = tellScrolled() + tellObservers();
  const all = running(), fresh = all.filter(animation => !begun.has(animation));
  for (const animation of fresh) {
    begun.set(animation, now());
    send(animation, "begin", 0);
  }
  const due = all.map(animation => [left(animation), animation]).filter(([time]) => time < ms).sort(([a], [b]) => a - b);
  for (const [, animation] of due) if (animation.playState === "running") end(animation);
  return due.length ? Math.max(FRAME_MS, due.at(-1)[0]) : (fresh.length || seen) && FRAME_MS;
};

Object.defineProperty(window, "__waymarkFrames", {value: Object.freeze({advance}), configurable: true});
