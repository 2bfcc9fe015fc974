/* What tells elements apart that have no words of their own, and what state they are in.
 *
 * Owns the hints (an icon's name, a class, the text beside) and the states that attributes and the usual class names
 * tell. A state that only a style tells is not known. */

const ICON = /^(?:fa|fas|far|fab|bi|mdi|ti|ri|la|pi|el-icon|anticon|codicon|octicon|lucide|icon|glyphicon|oi|svg-icon)[-_]{1,2}([a-z][\w-]*)$/i;
const TOLD = ["data-icon", "data-tooltip", "data-title", "data-original-title", "data-bs-original-title", "data-label", "data-testid"];
const DULL = /^(css|sc|jss|svelte|ng|v|_|is|has|flex|grid|col|row|btn|button|d|p|m|px|py|mx|my|w|h|text|bg|rounded|border)(-|$)|\d{3}|^\w{1,2}$|[:[\]/]/;
const STATES = /^(?:[\w-]*[-_])?(checked|selected|active|pressed|toggled|expanded|collapsed|on|off)$/;
const MAX_HINT = 60, MAX_UP = 4;
const wordsOf = name => name.replace(/([a-z])([A-Z])/g, "$1 $2").replace(/[-_]+/g, " ").trim().slice(0, MAX_HINT);

const iconOf = element => {
  const parts = [element, ...[...element.querySelectorAll("*")].slice(0, 12)];
  for (const part of parts) {
    for (const name of TOLD) if (part.getAttribute(name)) return wordsOf(part.getAttribute(name).slice(0, MAX_HINT));
    const icon = [...part.classList].map(token => ICON.exec(token)).find(found => found && !/^(lg|sm|xs|fw|spin|\d*x)$/.test(found[1]));
    if (icon) return wordsOf(icon[1]);
    const drawn = part.localName === "use" ? part.getAttribute("href") ?? part.getAttribute("xlink:href") : part.localName === "img" ? part.getAttribute("src") : "";
    const last = /([\w-]+)(?:\.\w+)?(?:\?.*)?$/.exec((drawn ?? "").slice(-200));
    if (last && !drawn.startsWith("data:")) return wordsOf(last[1]);
  }
  return "";
};
/* Words that a style sheet draws before or after an element or what it holds; the signs of an icon's font are none. */
const drawnOf = element => {
  for (const part of [element, ...[...element.querySelectorAll("*")].slice(0, 12)]) {
    for (const side of ["::before", "::after"]) {
      const said = /^"(.*)"$/.exec(getComputedStyle(part, side).content)?.[1];
      if (said && /\p{L}|\p{N}/u.test(said)) return squeezed(said).slice(0, MAX_HINT);
    }
  }
  return "";
};
/* The texts in an element that no control has, with spaces between them, until they are longer than a hint. */
const spaced = element => {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let text = "";
  while (text.length <= MAX_HINT && walker.nextNode()) {
    const part = squeezed(walker.currentNode.data);
    if (part && !walker.currentNode.parentElement.closest(INTERACTIVE)) text = `${text} ${part}`.trim();
  }
  return text;
};
const CELLS = "td, th, [role=cell], [role=gridcell], [role=columnheader]";
/* What stands in the cell or the row around an element, or else before it. */
const besideOf = element => {
  const cell = element.closest(CELLS), around = cell && cell !== element ? spaced(cell) : "";
  if (around && around.length <= MAX_HINT) return around;
  const row = element.closest(ROWS), said = row && spaced(row);
  if (said) return said.length <= MAX_HINT ? said : said.slice(0, said.lastIndexOf(" ", MAX_HINT));
  let at = element;
  for (let i = 0; i < MAX_UP && at && at.localName !== "body"; i += 1, at = at.parentElement) {
    let before = at.previousSibling;
    while (before && !squeezed(before.textContent)) before = before.previousSibling;
    if (!before) continue;
    const text = before.nodeType === 3 ? squeezed(before.data) : before.nodeType === 1 && !before.matches(INTERACTIVE) ? spaced(before) : "";
    return text.length <= MAX_HINT ? text : "";
  }
  return "";
};
const classOf = element => {
  const token = [...element.classList].find(one => !DULL.test(one) && !STATES.test(one));
  return wordsOf(element.id && !/\d{2}|:/.test(element.id) ? element.id : token ?? "");
};
/* What the drawings in an element are called. */
const titlesIn = element => squeezed([...element.querySelectorAll(TITLED)].slice(0, MAX_UP)
  .map(one => one.getAttribute("aria-label") || one.getAttribute("title")).join(" ")).slice(0, MAX_HINT);
/* Roles whose content is no name. */
const VALUED = new Set(["slider", "spinbutton"]);
const NAMED = ["aria-label", "title", "alt", "placeholder", "aria-placeholder", "data-placeholder"];
/* Words for an element without any; "" where it has some, and on a page that names its elements itself. */
const hintOf = (element, found) => {
  if (document.documentElement.hasAttribute("data-waymark-named")) return "";
  if (found.labelledby || NAMED.some(name => element.getAttribute(name)?.trim()) || [...element.labels ?? []].some(textOf)) return "";
  if (state.editors.has(element) || element.isContentEditable) return classOf(element) || besideOf(element) || "editor";
  const field = VALUED.has(found.role) || (["input", "select", "textarea"].includes(element.localName) && !["submit", "button", "reset", "image"].includes(element.type));
  const text = !field && textOf(element);
  if (text || (element.localName === "input" && (element.value && !field)) || (field && element.name)) return "";
  if (element.querySelector("img[alt]:not([alt='']), svg title, svg[aria-label]:not([aria-label=''])")) return "";
  const link = /([\w-]+)(?:\.\w+)?\/?$/.exec((element.getAttribute("href") ?? "").split(/[?#]/)[0]);
  return (field ? besideOf(element) || classOf(element) : titlesIn(element) || drawnOf(element) || iconOf(element) || (link && wordsOf(link[1])) || classOf(element) || besideOf(element)) ||
    `${element.localName} ${[...element.parentElement?.children ?? []].indexOf(element) + 1}`;
};

const stateOf = (element, tag, used) => {
  const told = name => element.getAttribute(`aria-${name}`), is = [];
  if (told("pressed") === "true") is.push("pressed");
  if (told("checked") === "mixed" || told("pressed") === "mixed") is.push("mixed");
  if (told("selected") === "true") is.push("selected");
  if (told("expanded") === "true") is.push("expanded");
  if (told("expanded") === "false") is.push("collapsed");
  if (!["a", "input"].includes(tag) && !["", "false", null].includes(told("current"))) is.push("current");
  if ((used || tag === "button") && tag !== "input" && !["checked", "pressed", "selected"].some(name => told(name) !== null)) {
    const word = [...element.classList].map(token => STATES.exec(token)).find(Boolean);
    if (word && !is.includes(word[1])) is.push(word[1]);
  }
  if (tag === "video" || tag === "audio") is.push(element.paused ? "paused" : "playing");
  return is.join(", ");
};

/* ---- editors: what is typed into a field that does not show goes into the text around it ---- */

const MAX_SINK = 4, LEAST_EDITOR = 15;
const editorsOf = roots => {
  const found = new Map();
  for (const root of roots) {
    for (const sink of [...root.querySelectorAll("textarea")].slice(0, 50)) {
      const {width, height} = sink.getBoundingClientRect(), {opacity, display} = getComputedStyle(sink);
      const clipped = sink.parentElement && sink.parentElement.getBoundingClientRect();
      const small = width < MAX_SINK || height < MAX_SINK || opacity === "0" || clipped.width < MAX_SINK || clipped.height < MAX_SINK;
      if (display === "none" || !small || sink.disabled || sink.readOnly) continue;
      let host = sink.parentElement;
      while (host && host.localName !== "body" && !(host.clientHeight >= LEAST_EDITOR && host.clientWidth >= 4 * LEAST_EDITOR)) host = host.parentElement;
      if (host && host.localName !== "body" && !found.has(host)) found.set(host, sink);
    }
  }
  return found;
};
/* An editor's own text: not its line numbers, nor what it keeps for itself. */
const editedText = host => {
  const parts = [];
  const gather = element => {
    const style = getComputedStyle(element);
    if (style.display === "none" || style.visibility !== "visible" ||
      ["textarea", "style", "script"].includes(element.localName) || parts.length > MAX_PARTS) return;
    const block = !style.display.startsWith("inline");
    if (block) parts.push("\n");
    for (const child of element.childNodes) {
      if (child.nodeType === 3) parts.push(child.data);
      else if (child.nodeType === 1 && !(/gutter|line-?number|^margin/i.test(child.getAttribute("class") ?? ""))) gather(child);
    }
    if (block) parts.push("\n");
  };
  gather(host);
  return parts.join("").replace(/[\u200b\ufeff]/g, "").split("\n").map(line => line.trimEnd()).filter(Boolean).join("\n");
};
