/* What in a page could be used by a person, told by other means than the page script's.
 *
 * Runs in a world of its own, which pages do not reach. `candidates` are elements with what DevTools says of them
 * (`why`: a role of the accessibility tree, a listener, a framework's handler), `offered` those of an observation. Owns
 * what hit testing, styles and the focus order add, and which elements are one target. */
(candidates, offered) => {
  const MOST = 5000, MOST_TEXT = 2000000, LEAST = 2, SAME = 0.6;
  const up = node => node.assignedSlot ?? node.parentNode ?? node.host ?? null;
  const roots = [document], every = [];
  for (const root of roots) {
    for (const element of root.querySelectorAll("*")) {
      every.push(element);
      if (element.shadowRoot) roots.push(element.shadowRoot);
      try { if (element.contentDocument) roots.push(element.contentDocument); } catch { /* of another origin */ }
    }
  }
  const within = (node, element) => {
    for (let at = node; at; at = up(at)) if (at === element) return true;
    return false;
  };
  const whole = new Set(["HTML", "BODY"]);
  const text = element => (element.innerText ?? element.textContent ?? "").replace(/[\u200b\ufeff]/g, "").replace(/\s+/g, " ").trim();

  /* ---- why an element could be used ---- */

  const why = new Map();
  const reason = (element, word) => {
    if (!element || whole.has(element.tagName)) return;
    if (!why.has(element)) why.set(element, new Set());
    why.get(element).add(word);
  };
  const style = element => element.ownerDocument.defaultView?.getComputedStyle(element) ?? getComputedStyle(element);
  const pointed = element => style(element).cursor === "pointer";
  for (const element of every.slice(0, MOST)) {
    if (element.localName === "label" && !element.control) continue;
    if (pointed(element) && !(element.parentElement && pointed(element.parentElement))) reason(element, "cursor");
    if (element.getAttribute("tabindex") !== null && element.tabIndex >= 0 && !element.contentDocument) reason(element, "tabindex");
    if (element.isContentEditable && !element.parentElement?.isContentEditable) reason(element, "editable");
    if (element.localName === "area" && element.href) reason(element, "area");
    if (element.matches("audio[controls], video[controls]")) reason(element, "media");
  }
  const isLine = element => {
    const {width, height} = element.getBoundingClientRect();
    return element.children.length === 0 && !pointed(element) && Math.min(width, height) < 8 && Math.max(width, height) >= 16;
  };
  const LARGE = 200, CONTROLS = "a[href], button, input, select, textarea, summary, [role]", ROWS = "tr, li, [role=row], [role=listitem], [role=option], [role=treeitem]";
  for (const [element, word] of candidates) {
    if (element?.nodeType !== 1 || element.parentElement?.isContentEditable) continue;
    if ((/-resize$/.test(style(element).cursor) || isLine(element)) && !text(element)) continue;
    if (!word.startsWith("listener") || pointed(element) || element.matches(ROWS)) { reason(element, word); continue; }
    // Who listens for what it holds is used through that.
    let holder = element;
    while (holder.children.length === 1) [holder] = holder.children;
    const alike = [...holder.children].filter(one => one.classList[0] && one.classList[0] === holder.children[0].classList[0] && text(one));
    const rows = [...element.querySelectorAll(ROWS)].filter(row => text(row) && !row.querySelector("th, [role=columnheader]"));
    const used = rows.length > 1 || (rows.length && element.querySelector("[role=rowgroup], tbody")) ? rows : alike.length > 2 ? alike : [];
    const icons = [...element.querySelectorAll("[title], [aria-label]")].filter(one => (one.title || one.ariaLabel) &&
      !text(one) && !one.closest(CONTROLS) && !one.querySelector(`[title], [aria-label], ${CONTROLS}`));
    const held = [...used, ...(used.length || (icons.length > 1 && !text(element)) ? icons : [])];
    for (const one of held) if (!one.isContentEditable) reason(one, "delegated");
    if (!held.length && text(element).length <= LARGE) reason(element, word);
  }

  // Who listens and holds others, with nothing to say beside them, listens for them.
  const beside = (element, others) => others.reduce((left, other) => left.replace(text(other), ""), text(element)).trim();
  for (const [element, words] of why) {
    if ([...words].some(word => !["listener", "cursor"].includes(word))) continue;
    const others = [...why.keys()].filter(other => other !== element && within(other, element));
    if (others.length > 1 && beside(element, others).length <= (pointed(element) ? 0 : LARGE / 10)) why.delete(element);
  }
  // What holds others takes the focus for them.
  for (const [element, words] of why) {
    if (words.size === 1 && words.has("tabindex") && [...why.keys()].some(other => other !== element && within(other, element))) why.delete(element);
  }

  /* ---- whether a pointer reaches it ---- */

  const hit = (root, x, y) => {
    let found = root.elementFromPoint(x, y);
    while (found?.shadowRoot) {
      const inner = found.shadowRoot.elementFromPoint(x, y);
      if (!inner || inner === found) break;
      found = inner;
    }
    return found;
  };
  const boxes = element => element.localName === "area" ? [] : [element, ...element.children].slice(0, 20)
    .flatMap(one => [...one.getClientRects()]).filter(box => box.width >= LEAST && box.height >= LEAST);
  const view = element => element.ownerDocument.defaultView ?? window;
  const points = (box, {innerWidth, innerHeight}) => {
    const [left, top] = [Math.max(box.left, 0), Math.max(box.top, 0)];
    const [right, bottom] = [Math.min(box.right, innerWidth), Math.min(box.bottom, innerHeight)];
    if (right <= left || bottom <= top) return [];
    return [0.5, 0.2, 0.8].flatMap(x => [0.5, 0.25, 0.75].map(y => [left + x * (right - left), top + y * (bottom - top)]));
  };
  const reached = element => {
    if (element.localName === "area") return reached(document.querySelector(`img[usemap="#${CSS.escape(element.parentElement.name)}"]`) ?? document.body) ;
    if (!element.checkVisibility({visibilityProperty: true})) return "hidden";
    if (style(element).pointerEvents === "none") return "no pointer";
    for (const label of element.labels ?? []) if (boxes(label).length && !reached(label)) return "";
    const found = boxes(element);
    if (!found.length) return "no size";
    const before = [];
    for (let at = element.parentElement; at; at = at.parentElement) before.push([at, at.scrollTop, at.scrollLeft]);
    try { return pointedAt(element, found); } finally {
      for (const [at, top, left] of before) { if (at.scrollTop !== top) at.scrollTop = top; if (at.scrollLeft !== left) at.scrollLeft = left; }
    }
  };
  const pointedAt = (element, found) => {
    for (let at = element.parentElement; at && at !== document.body; at = at.parentElement) {
      const {overflowX, overflowY, display} = style(at), box = at.getBoundingClientRect();
      if (display === "inline" || style(element).position === "fixed") continue;
      const across = /hidden|clip/.test(overflowX), along = /hidden|clip/.test(overflowY);
      const cut = one => (along && (one.bottom <= box.top || one.top >= box.bottom)) || (across && (one.right <= box.left || one.left >= box.right));
      if (found.every(cut) && !element.labels?.length) return "clipped";
    }
    element.scrollIntoView({block: "center", inline: "nearest", behavior: "instant"});
    let covered = false;
    for (const box of boxes(element)) {
      for (const [x, y] of points(box, view(element))) {
        const top = hit(element.ownerDocument, x, y);
        if (top && within(top, element)) return "";
        if (top?.closest("label")?.control === element) return "";
        covered = true;
      }
    }
    return covered ? "covered" : "out of sight";
  };
  const listed = [...new Set([...why.keys(), ...offered])].filter(Boolean).slice(0, MOST);
  const state = new Map(listed.map(element => [element, reached(element)]));

  /* ---- which are one target: a control and its label, a wrapper and the only thing in it ---- */

  const group = new Map(listed.map(element => [element, element]));
  const leader = element => { let at = element; while (group.get(at) !== at) at = group.get(at); return at; };
  const join = (one, other) => { if (group.has(one) && group.has(other)) group.set(leader(one), leader(other)); };
  const area = element => { const box = element.getBoundingClientRect(); return box.width * box.height; };
  for (const element of listed) {
    for (const label of element.labels ?? []) join(label, element);
    const outer = (() => { for (let at = up(element); at; at = up(at)) if (group.has(at)) return at; return null; })();
    if (!outer) continue;
    const only = !text(outer) && listed.every(other => other === element || other === outer || !within(other, outer));
    const alike = text(element) === text(outer), size = area(element) / Math.max(1, area(outer));
    if (only) join(element, outer);
    if (alike ? text(element) || size >= SAME / 2 : size >= SAME && !text(outer)) join(element, outer);
    const inner = outer.querySelectorAll("input, textarea, select");
    if (inner.length === 1 && inner[0] === element && text(outer).length < 40 && outer.localName !== "tr") join(element, outer);
  }

  const wording = element => {
    const name = element.getAttribute("aria-label") || text(element) || element.title || element.getAttribute("class") || "";
    return `<${element.localName}> ${name.slice(0, 60)}`;
  };
  const disabled = element => element.matches(":disabled, [aria-disabled=true]") || Boolean(element.closest("[inert]"));
  const shown = new Set(offered);
  const targets = listed.map(element => ({
    group: listed.indexOf(leader(element)), why: [...why.get(element) ?? []], unreached: state.get(element),
    offered: shown.has(element), disabled: disabled(element), wording: wording(element),
  }));
  /* Words of which a part is bold are one word; neighbours are two. */
  const INLINE = new Set("b i em strong u s small mark sub sup code font abbr".split(" "));
  const UNREAD = new Set("script style noscript template textarea option title".split(" "));
  const shows = new Map(), parts = [];
  let last = null;
  for (const root of roots) {
    const walker = document.createTreeWalker(root.body ?? root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const {parentElement: parent, data} = walker.currentNode;
      if (!parent || UNREAD.has(parent.localName)) continue;
      if (!shows.has(parent)) shows.set(parent, parent.checkVisibility({visibilityProperty: true, opacityProperty: true}));
      if (!shows.get(parent)) continue;
      parts.push(INLINE.has(parent.localName) || INLINE.has(last?.localName) ? "" : " ", data);
      last = parent;
    }
  }
  const read = parts.join("").slice(0, MOST_TEXT);
  return JSON.stringify({targets, text: read});
}
