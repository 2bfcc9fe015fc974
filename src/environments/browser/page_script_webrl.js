/* What the `webrl` observation format needs beside the page script, installed only for that format.
 *
 * Owns which elements carry a number there (clickable by the lineage's rules, in view, not covered, innermost)
 * and the attributes that are worked out on the live page: boxes, own texts, values, states. `webrl_format.py`
 * decides what of it is shown. */
(() => {
  const ROLES = new Set(["button", "tab", "link", "checkbox", "menuitem", "menuitemcheckbox", "menuitemradio", "radio"]);
  const TAGS = new Set(["input", "textarea", "select", "button", "a", "iframe", "video", "object", "embed", "details"]);
  const SHOWN = ["title", "value", "type", "placeholder", "selected", "data-value", "data-text", "data-testid", "data-label",
    "data-status", "aria-hidden"];
  const MAX_DEPTH = 250, MAX_ELEMENTS = 20000, MAX_TEXT = 1000;
  const LEFT_OUT = new Set(["script", "style"]);

  const invites = element => {
    const tag = element.localName, role = element.getAttribute("role"), editable = element.getAttribute("contenteditable");
    if (TAGS.has(tag) || element.onclick || getComputedStyle(element).cursor === "pointer") return true;
    if (role !== null && ROLES.has(role.toLowerCase())) return true;
    if (editable !== null && ["", "contenteditable", "true"].includes(editable.toLowerCase())) return true;
    if (tag === "label" && element.control && !element.control.disabled) return true;
    if ((element.getAttribute("class") ?? "").toLowerCase().includes("button")) return true;
    return parseInt(element.getAttribute("tabindex"), 10) >= 0;
  };

  /* The part of an element's boxes that lies in view and is not covered, in square pixels. */
  const openArea = element => {
    let area = 0;
    for (const box of element.getClientRects()) {
      const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
      if (top && element.contains(top)) {
        area += (Math.min(innerWidth, box.right) - Math.max(0, box.left)) * (Math.min(innerHeight, box.bottom) - Math.max(0, box.top));
      }
    }
    return area;
  };

  let left = 0, ends = 0, cut = false;
  const now = performance.now.bind(performance);
  const inTime = () => { cut ||= now() > ends; return !cut; };

  const numbered = () => {
    const every = [...document.querySelectorAll("*")];
    cut = every.length > MAX_ELEMENTS;
    const all = every.slice(0, MAX_ELEMENTS).filter(e => now() <= ends && invites(e) && openArea(e) >= 1);
    const chosen = new Set(all);
    for (const element of all) {
      for (let outer = element.parentElement; outer; outer = outer.parentElement) chosen.delete(outer);
    }
    return [...chosen];
  };

  const attributesOf = element => {
    const tag = element.localName, found = {__proto__: null};
    for (const name of SHOWN) {
      const value = element.getAttribute(name);
      if (value !== null) found[name] = value;
    }
    const box = element.getClientRects()[0];
    if (box) {
      const [left, top, right, bottom] = [box.left, box.top, box.right, box.bottom].map(Math.round);
      found["data-bbox"] = `${left},${top},${right - left},${bottom - top}`;
    }
    if (element.hasChildNodes()) {
      const texts = [...element.childNodes].filter(n => n.nodeType === 3).map(n => n.textContent.trim().replace(/\s{2,}/g, " "));
      found["data-text"] = texts.filter(Boolean).join(",");
    }
    if (tag === "select") {
      found["data-value"] = element.value;
      found["data-text"] = element.options[element.selectedIndex]?.text ?? "";
    }
    if (tag === "option" && element.closest("select")?.selectedOptions[0] === element) found["data-status"] = "selected";
    if (tag === "input" && element.getAttribute("type") === "checkbox") {
      found["data-status"] = element.checked ? "checked" : "not-checked";
    }
    if (tag === "input" || tag === "textarea") found["data-value"] = element.value;
    for (const name of Object.keys(found)) found[name] = found[name].slice(0, MAX_TEXT);
    return found;
  };

  const describe = (element, numbers, depth) => {
    left -= 1;
    const node = [element.localName, attributesOf(element)];
    if (numbers.has(element)) node[1].mark = String(numbers.get(element));
    if (depth >= MAX_DEPTH || left < 0) { cut ||= element.childElementCount > 0; return node; }
    for (const child of element.childNodes) {
      if (left < 0 || !inTime()) break;
      if (child.nodeType === 1 && !LEFT_OUT.has(child.localName)) node.push(describe(child, numbers, depth + 1));
      else if (child.nodeType === 3) node.push(child.data.slice(0, MAX_TEXT));
    }
    return node;
  };

  /* Until `until` on the page's clock; of a page that must not be asked for styles only that it is there. */
  const view = (until, hopeless) => {
    if (hopeless) return {elements: [], numbers: new Map(), tree: ["html", {}], window: [screen.width, screen.height], cut: true};
    [left, ends, cut] = [MAX_ELEMENTS, until, false];
    const elements = numbered();
    const numbers = new Map(elements.map((element, number) => [element, number]));
    const tree = describe(document.documentElement, numbers, 0);
    return {elements, numbers, tree, window: [innerWidth, innerHeight], cut};
  };
  Object.defineProperty(window, "__waymarkView", {value: view});
})();
