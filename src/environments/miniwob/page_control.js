/* Runs the episodes of one MiniWoB++ page, and says in text what the page says in pictures.
 *
 * Installed once a document, after the page's own scripts; owns `window.__miniwob`. The page's logic is left as
 * it is: what is added stands in a shadow tree at the end of the page, which the page's selectors do not reach, and
 * in labels and roles of elements without. Invariants: an episode depends on its seed alone (random numbers and the
 * clock start anew, timers of the episode before are gone, nothing is animated); whatever an aid does could be done
 * with mouse and keyboard. `aids` are those of `pages.py`. */
(() => {
  if (window.__miniwob) return;

  const STYLE = "#reward-display, #click-canvas, #sync-task-cover { display: none !important } " +
    "waymark-text { display: block; position: absolute; top: 240px; left: 0 }";
  const SHAPES = "text, rect, circle, ellipse, polygon, polyline, line, path";
  const NOISE = /^ui-(widget|corner|state|button|icon$|front|helper|menu|accordion|slider)/;
  const CONTROLS = "a, button, input, select, textarea, [role]";
  const LONGEST_EPISODE_MS = 1e9, EPISODE_CLOCK_MS = Date.UTC(2017, 0, 1), MOST_KEYS = 500, LEAST_SIZE = 4;

  /* ---- a clock that starts with the episode ---- */

  const RealDate = Date;
  let shift = 0;
  const now = () => RealDate.now() + shift;
  window.Date = new Proxy(RealDate, {
    construct: (kind, given, target) => Reflect.construct(kind, given.length ? given : [now()], target),
    apply: () => new RealDate(now()).toString(),
    get: (kind, key) => key === "now" ? now : Reflect.get(kind, key),
  });

  /* ---- words for what has none ---- */

  const all = selector => [...document.querySelectorAll(selector)];
  const hex = colour => colour.replace(/^rgb\((\d+), (\d+), (\d+)\)$/, (_, ...parts) =>
    "#" + parts.slice(0, 3).map(part => Number(part).toString(16).padStart(2, "0")).join(""));
  const words = element => {
    const classes = [...element.classList].filter(name => !NOISE.test(name));
    return [element.id, ...classes, hex(element.style.backgroundColor)].filter(Boolean).join(" ");
  };
  const heard = new WeakSet(), addListener = EventTarget.prototype.addEventListener;
  EventTarget.prototype.addEventListener = function (type, ...rest) {
    if (type === "click" && this instanceof HTMLElement) heard.add(this);
    return addListener.call(this, type, ...rest);
  };
  /* The page script numbers only the outermost of nested things that can be pressed, unless they have roles. */
  const outer = element => {
    const found = [];
    for (let up = element.parentElement; up && up.id !== "area"; up = up.parentElement) found.push(up);
    return found;
  };
  const silent = element => element instanceof HTMLElement && !element.textContent.trim() &&
    !element.matches("input, textarea, select, option, br, hr, img, [title], [alt]") &&
    !element.querySelector("input, textarea, select, img");
  const ours = new WeakMap();
  const label = () => {
    for (const element of all("body *")) {
      if (element === host) continue;
      const given = ours.get(element);
      if (given !== undefined && given !== element.getAttribute("aria-label")) continue;
      const wanted = silent(element) && (given !== undefined || !element.hasAttribute("aria-label")) ? words(element) : "";
      if (wanted) element.setAttribute("aria-label", wanted); else if (given) element.removeAttribute("aria-label");
      if (wanted) ours.set(element, wanted); else ours.delete(element);
    }
    document.documentElement.setAttribute("data-waymark-named", "");  // what has no name here is to have none
    for (const drawing of all("#wrap svg:not([role])")) drawing.setAttribute("role", "img");  // the aids put it in words
    for (const link of all("body a:not([href], [role])")) link.setAttribute("role", "link");
    for (const element of all("#area *").filter(one => heard.has(one))) {
      const around = outer(element);
      if (!around.some(one => heard.has(one) || getComputedStyle(one).cursor === "pointer")) continue;
      for (const one of [element, ...around]) if (heard.has(one) && !one.matches(CONTROLS)) one.setAttribute("role", "button");
    }
  };

  /* ---- acting for the mouse and the keyboard ---- */

  const key = (target, type, options) =>
    target.dispatchEvent(new KeyboardEvent(type, {bubbles: true, cancelable: true, ...options}));
  const press = target => {
    const box = target.getBoundingClientRect();
    const at = {bubbles: true, cancelable: true, view: window, clientX: box.x + box.width / 2, clientY: box.y + box.height / 2};
    for (const type of ["mousedown", "mouseup", "click"]) target.dispatchEvent(new MouseEvent(type, at));
  };
  const slide = (slider, wanted) => {
    const handle = slider.querySelector(".ui-slider-handle"), value = () => window.jQuery(slider).slider("value");
    for (let n = 0; n < MOST_KEYS && value() !== wanted && Number.isFinite(wanted); n++) {
      const before = value(), code = before < wanted ? 39 : 37;
      key(handle, "keydown", {key: code === 39 ? "ArrowRight" : "ArrowLeft", keyCode: code, which: code});
      key(handle, "keyup", {keyCode: code, which: code});
      if (value() === before || (before < wanted) !== (value() <= wanted)) break;
    }
  };
  let clipboard = "";
  const scroll = (area, top) => { area.scrollTop = top; area.dispatchEvent(new Event("scroll")); };

  /* ---- the aids: each gives lines {of, kind: text | button | field, name, value, act, enter} ---- */

  const text = (of, name) => ({of, kind: "text", name});
  const button = (of, name, act) => ({of, kind: "button", name, act});
  const drawn = selector => all("#wrap svg").flatMap(svg => [...svg.querySelectorAll(selector)]).filter(one => {
    const {width, height} = one.getBoundingClientRect();
    return Math.max(width, height) >= LEAST_SIZE;
  });
  const shape = element => {
    const box = element.getBoundingClientRect(), outer = element.ownerSVGElement.getBoundingClientRect();
    const letter = element.localName === "text", round = Math.round;
    const size = letter ? element.getAttribute("font-size") ?? "" : `${round(box.width)}x${round(box.height)}`;
    const place = `at ${round(box.x - outer.x + box.width / 2)},${round(box.y - outer.y + box.height / 2)}`;
    const what = letter ? JSON.stringify(element.textContent) : element.localName;
    return [element.id, element.getAttribute("fill") ?? "", what, size, place].filter(Boolean).join(" ");
  };
  const aids = {
    shapes: () => drawn(SHAPES).map(one => button(one, shape(one), () => press(one))),
    labels: () => drawn("text").map(one => button(one, one.textContent, () => press(one))),
    slider: () => all("#area .ui-slider").map((slider, i) => {
      const value = window.jQuery(slider).slider("value"), {min, max} = window.jQuery(slider).slider("option");
      const act = field => slide(slider, field.value.trim() === "" ? NaN : Number(field.value));
      return {of: slider, kind: "field", name: `slider ${i + 1} (${min} to ${max})`, value: String(value), act};
    }),
    read: () => all("#area textarea").map(area => text(area, area.value)),
    scroll: () => all("#area textarea").flatMap(area => {
      const room = area.scrollHeight - area.clientHeight, part = Math.round(100 * area.scrollTop / Math.max(room, 1));
      return [text(area, `${area.id} is scrolled to ${part} %`),
        button(area, `${area.id} scroll to the top`, () => scroll(area, 0)),
        button(area, `${area.id} scroll to the bottom`, () => scroll(area, room))];
    }),
    options: () => all("#area select[multiple] option").map(option =>
      button(option, `${option.selected ? "leave out" : "add"} ${option.label}`, () => {
        option.selected = !option.selected;
        option.parentElement.dispatchEvent(new Event("change", {bubbles: true}));
      })),
    keys: () => [
      ...all(".terminal-line, .terminal-output").map(line => text(line, line.textContent)),
      ...all("#terminal-target").map(target => {
        const typed = () => document.getElementById("active-input").textContent;
        const stroke = options => { key(target, "keydown", options); key(target, "keyup", options); };
        const act = field => {
          for (const _ of typed()) stroke({key: "Backspace", keyCode: 8, which: 8});
          for (const char of field.value) stroke({key: char});
        };
        const enter = () => stroke({key: "Enter", keyCode: 13, which: 13});
        return {of: target, kind: "field", name: "command line", value: typed(), act, enter};
      }),
    ],
    clipboard: () => [
      ...all("#area textarea").map((area, i) => button(area, `copy text area ${i + 1}`, () => { clipboard = area.value; })),
      ...all("#area input").map((field, i) => button(field, `paste into field ${i + 1}`, () => {
        field.value = clipboard;
        field.dispatchEvent(new InputEvent("input", {bubbles: true, inputType: "insertFromPaste"}));
      })),
    ],
    mark: () => [
      text(document, `highlighted: ${document.getSelection().toString().trim() || "nothing"}`),
      ...all("#area *").filter(one => !one.children.length && one.localName !== "button" && one.textContent.trim())
        .map((one, i) => button(one, `highlight text ${i + 1}`, () => document.getSelection().selectAllChildren(one))),
    ],
    blocks: () => {
      const groups = new Map();
      for (const one of all("#wrap *").filter(one => ours.has(one) && one.getBoundingClientRect().width)) {
        groups.set(one.parentElement, [...groups.get(one.parentElement) ?? [], ours.get(one)]);
      }
      return [...groups].map(([parent, names]) => text(parent, `${parent.textContent.trim() || parent.id}: ${names.join(", ")}`));
    },
  };

  /* ---- the added text: one element for each line, which stays the same while its line does ---- */

  const host = document.createElement("waymark-text"), root = host.attachShadow({mode: "open"});
  const TAGS = {text: "p", button: "button", field: "input"};
  const current = new WeakMap();
  let used = [], made = new Map();
  const make = kind => {
    const element = document.createElement(TAGS[kind]);
    const run = name => event => { event.stopPropagation(); current.get(element)[name]?.(element); update(); };
    if (kind === "button") element.addEventListener("click", run("act"));
    if (kind !== "field") return element;
    element.addEventListener("input", run("act"));
    element.addEventListener("blur", () => { element.value = current.get(element).value; });
    element.addEventListener("keydown", event => { if (event.key === "Enter") run("enter")(event); });
    return element;
  };
  const update = () => {
    label();
    const before = made, counts = new Map();
    made = new Map();
    const elements = used.flatMap(name => aids[name]()).map(line => {
      const nth = counts.get(line.of) ?? 0;
      counts.set(line.of, nth + 1);
      const known = before.get(line.of)?.[nth], element = known?.localName === TAGS[line.kind] ? known : make(line.kind);
      made.set(line.of, [...made.get(line.of) ?? [], element]);
      current.set(element, line);
      if (line.kind !== "field") element.textContent = line.name;
      else element.setAttribute("aria-label", line.name);
      if (line.kind === "field" && root.activeElement !== element) element.value = line.value;
      return element;
    });
    if (elements.length !== root.children.length || elements.some((one, i) => one !== root.children[i])) {
      root.replaceChildren(...elements);
    }
  };
  const style = document.createElement("style");
  style.textContent = STYLE;
  document.head.append(style);
  document.body.append(host);
  document.addEventListener("submit", event => event.preventDefault());
  if (window.jQuery) window.jQuery.fx.off = true;
  new MutationObserver(update).observe(document.body, {childList: true, subtree: true, characterData: true, attributes: true,
    attributeFilter: ["class", "style", "id", "fill", "transform"]});
  for (const told of ["change", "input", "scroll"]) document.addEventListener(told, update, true);  // none alters the tree

  /* ---- pictures of :hover, without which an element shrinks to nothing under the mouse until they have come ---- */

  const pictures = [...document.styleSheets].flatMap(sheet => sheet.ownerNode.localName === "style" ? [...sheet.cssRules] : [])
    .flatMap(rule => [...(rule.style?.content ?? "").matchAll(/url\("([^"]+)"\)/g)]).map(([, url]) => {
      const picture = new Image();
      picture.src = url;
      return picture;
    });

  /* ---- episodes ---- */

  let mark = 0;
  const forgetTimers = () => {
    const last = setTimeout(() => {}, 0);
    for (let id = mark || last; id <= last; id++) clearTimeout(id);
    mark = last;
  };
  /* Null while the page is not ready; no promise, for one may be collected before it is heard. */
  const start = (seed, chosen) => {
    if (!core.cover_div || !pictures.every(picture => picture.complete)) return null;
    forgetTimers();
    root.activeElement?.blur();
    document.activeElement?.blur();
    history.replaceState(null, "", location.pathname);
    shift = EPISODE_CLOCK_MS - RealDate.now();
    window.jQuery?.resetUniqueId?.();
    Math.seedrandom(seed);
    core.EPISODE_MAX_TIME = LONGEST_EPISODE_MS;
    core.startEpisodeReal();
    used = chosen;
    clipboard = "";
    update();
    const said = core.getUtterance();
    return typeof said === "string" ? said : said.utterance;
  };
  const score = () => ({done: WOB_DONE_GLOBAL, raw: WOB_RAW_REWARD_GLOBAL, reason: WOB_REWARD_REASON ?? ""});

  window.__miniwob = Object.freeze({start, score});
})();
