/* Observers of sizes and of what is in sight, and the events of scrolling, where Chromium draws no frames.
 *
 * A frame would tell of all three, so that without one lists that load as they are scrolled stay empty. `tellScrolled`
 * and `tellObservers` compare with what was told last, tell what differs, and return how much that was. The rules are those
 * of the standards (Intersection Observer, Resize Observer, CSSOM View); visibility behind others is not asked for. */

const same = (one, other) => one.every((value, i) => value === other[i]);
const made = (Kind, values) => Object.create(Kind.prototype,
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, {value, enumerable: true}])));
/* Errors of a page are its own. */
const called = (observer, callback, entries) => {
  try { callback.call(observer, entries, observer); } catch (error) { reportError(error); }
};
const observers = new Map();
const tellObservers = () => [...observers.values()].filter(tell => tell()).length;

/* Has `look` say what is to be told of a target, and keep what it was; null is nothing. */
const observing = (Native, look) => {
  const own = new WeakMap();
  const tell = observer => {
    const {callback, targets} = own.get(observer);
    const entries = [...targets].map(([target, known]) => look(observer, target, known)).filter(Boolean);
    if (entries.length) called(observer, callback, entries);
    return entries.length > 0;
  };
  const left = observer => { if (own.get(observer).targets.size === 0) observers.delete(observer); };
  const Observer = class extends Native {
    constructor(callback, ...options) {
      super(callback, ...options);
      own.set(this, {callback, targets: new Map()});
    }
    observe(target, ...options) {
      super.observe(target, ...options);  // refuses what is no target
      super.unobserve(target);
      own.get(this).targets.set(target, {options: options[0], was: null});
      observers.set(this, () => tell(this));
      later(tellObservers, FRAME_MS);
    }
    unobserve(target) { super.unobserve(target); own.get(this).targets.delete(target); left(this); }
    disconnect() { super.disconnect(); own.get(this).targets.clear(); left(this); }
  };
  Object.defineProperty(Observer, "name", {value: Native.name});
  // What is found is told at once, so that nothing is ever left to be taken.
  if ("takeRecords" in Native.prototype) Observer.prototype.takeRecords = () => [];
  window[Native.name] = Observer;
};

/* ---- in sight ---- */

const rectOf = ({left, top, right, bottom}) => ({left, top, right, bottom});
const meet = (one, other) => ({left: Math.max(one.left, other.left), top: Math.max(one.top, other.top),
  right: Math.min(one.right, other.right), bottom: Math.min(one.bottom, other.bottom)});
const touches = ({left, top, right, bottom}) => right >= left && bottom >= top;
const asDomRect = ({left, top, right, bottom}) => new DOMRectReadOnly(left, top, right - left, bottom - top);
const EMPTY = {left: 0, top: 0, right: 0, bottom: 0};
const insideOf = element => {
  const {left, top} = element.getBoundingClientRect();
  const x = left + element.clientLeft, y = top + element.clientTop;
  return {left: x, top: y, right: x + element.clientWidth, bottom: y + element.clientHeight};
};
const grown = (rect, margin) => {
  const sizes = [rect.bottom - rect.top, rect.right - rect.left];
  const [top, right, bottom, left] = margin.split(" ").map((one, i) => parseFloat(one) * (one.endsWith("%") ? sizes[i % 2] / 100 : 1));
  return {left: rect.left - left, top: rect.top - top, right: rect.right + right, bottom: rect.bottom + bottom};
};
const parentOf = element => element.assignedSlot ?? element.parentElement ?? element.getRootNode().host ?? null;
/* What of an element is within all that cuts it and within the root; null where it has no box or is not in the root. */
const sightOf = (target, root, bounds) => {
  if (!target.isConnected || !target.getClientRects().length) return null;
  let seen = rectOf(target.getBoundingClientRect()), {position} = getComputedStyle(target);
  for (let at = parentOf(target); at !== root; at = parentOf(at)) {
    if (at === null) { if (root) return null; break; }
    const style = getComputedStyle(at), holds = style.position !== "static" || style.transform !== "none";
    if (position === "fixed" || (position === "absolute" && !holds)) continue;
    if (style.overflow !== "visible" && at !== document.documentElement && at !== document.body) seen = meet(seen, insideOf(at));
    if (!touches(seen)) return null;
    ({position} = style);
  }
  seen = meet(seen, bounds);
  return touches(seen) ? seen : null;
};
observing(IntersectionObserver, (observer, target, known) => {
  const root = observer.root instanceof Element ? observer.root : null;
  const view = {left: 0, top: 0, right: innerWidth, bottom: innerHeight};
  const bounds = grown(root ? insideOf(root) : view, observer.rootMargin), seen = sightOf(target, root, bounds);
  const box = rectOf(target.getBoundingClientRect()), areaOf = one => (one.right - one.left) * (one.bottom - one.top);
  const whole = areaOf(box), ratio = seen === null ? 0 : whole ? Math.min(1, areaOf(seen) / whole) : 1;
  const past = seen === null ? 0 : observer.thresholds.filter(one => one <= ratio).length;
  const is = [past, seen !== null];
  if (known.was !== null && same(is, known.was)) return null;
  known.was = is;
  return made(IntersectionObserverEntry, {
    time: now(), target, isIntersecting: seen !== null, isVisible: false, intersectionRatio: ratio,
    rootBounds: asDomRect(bounds), boundingClientRect: asDomRect(box), intersectionRect: asDomRect(seen ?? EMPTY),
  });
});

/* ---- of which size ---- */

const SIDES = [["Left", "Right"], ["Top", "Bottom"]];
const sizesOf = target => {
  const none = {padding: [0, 0], content: [0, 0], border: [0, 0]};
  if (!target.isConnected || !target.getClientRects().length) return none;
  if (target instanceof SVGGraphicsElement && target.ownerSVGElement) {
    const {width, height} = target.getBBox();
    return {padding: [0, 0], content: [width, height], border: [width, height]};
  }
  const style = getComputedStyle(target), pixels = name => parseFloat(style[name]) || 0;
  if (style.display === "inline" && !/^(img|input|video|canvas|iframe|svg|select|textarea|object|embed|button)$/.test(target.localName)) return none;
  const edges = SIDES.map(pair => pair.reduce((sum, side) => sum + pixels(`padding${side}`) + pixels(`border${side}Width`), 0));
  const given = [pixels("width"), pixels("height")], bordered = style.boxSizing === "border-box";
  const content = given.map((size, i) => bordered ? Math.max(0, size - edges[i]) : size);
  return {padding: [pixels("paddingLeft"), pixels("paddingTop")], content, border: content.map((size, i) => size + edges[i])};
};
const asSize = ([width, height], upright) => made(ResizeObserverSize,
  upright ? {inlineSize: height, blockSize: width} : {inlineSize: width, blockSize: height});
observing(ResizeObserver, (observer, target, known) => {
  const {padding, content, border} = sizesOf(target), is = known.options?.box === "border-box" ? border : content;
  if (known.was !== null && same(is, known.was)) return null;
  known.was = is;
  const upright = getComputedStyle(target).writingMode.startsWith("vertical"), scale = devicePixelRatio;
  return made(ResizeObserverEntry, {
    target, contentRect: new DOMRectReadOnly(...padding, ...content),
    contentBoxSize: Object.freeze([asSize(content, upright)]), borderBoxSize: Object.freeze([asSize(border, upright)]),
    devicePixelContentBoxSize: Object.freeze([asSize(content.map(size => Math.round(size * scale)), upright)]),
  });
});

/* ---- scrolled ---- */

const MAX_SCANNED = 20000;
const places = new WeakMap();
let heard = false;
const listen = EventTarget.prototype.addEventListener;
EventTarget.prototype.addEventListener = function (type, ...rest) {
  if (type === "scroll" && this instanceof Element) heard = true;
  return listen.call(this, type, ...rest);
};
const placeOf = element => [element.scrollLeft, element.scrollTop];
/* Tells of what was scrolled since it was looked at last; parts of a page only where somebody listens for theirs. */
const tellScrolled = () => {
  const whole = document.scrollingElement, moved = [];
  for (const element of heard ? [...document.querySelectorAll("*")].slice(0, MAX_SCANNED) : [whole]) {
    if (!element) continue;
    const is = placeOf(element), was = places.get(element) ?? [0, 0];
    if (same(is, was)) continue;
    places.set(element, is);
    moved.push(element === whole ? document : element);
  }
  for (const target of moved) {
    for (const type of ["scroll", "scrollend"]) dispatch.call(target, new Event(type, {bubbles: target === document}));
  }
  return moved.length;
};
