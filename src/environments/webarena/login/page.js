// Looks at a page for its log-in form, marks the fields that it finds, and says what the page shows.
// A field that was typed into keeps its mark, so that a form in another document, or one that was drawn anew, is told
// from the one that was sent. Reads nothing that was typed.
({ logout, loggedIn, refused }) => {
  const MARK = "data-waymark-login";
  const LOGIN = /log[\s_-]?[io]n|sign[\s_-]?in|session/i;
  const ONWARD = /log[\s_-]?[io]n|sign[\s_-]?in|next|continue|submit/i;
  const NAME = /user|log[\s_-]?in|mail|account|identifier/i;
  const OTHER = /search|newsletter|subscribe|register|sign[\s_-]?up|create/i;
  const words = (el, ...names) => names.map((name) => el.getAttribute(name) || "").join(" ");
  const usable = (el) =>
    el.getClientRects().length > 0 && getComputedStyle(el).visibility === "visible" && !el.disabled && !el.readOnly;
  const about = (form) => (form ? words(form, "id", "class", "action", "name", "role") : "");
  const fresh = (el) => el && !el.hasAttribute(MARK);
  const mark = (el, as) => el && el.setAttribute(MARK, as);

  const inputs = [...document.querySelectorAll("input")].filter(usable);
  const isName = (el) => ["text", "email", "tel"].includes(el.type);
  const passwords = inputs.filter((el) => el.type === "password");
  const alone = passwords.filter(
    (el) => el.autocomplete !== "new-password" && passwords.filter((other) => other.form === el.form).length === 1,
  );
  const password = alone.find((el) => LOGIN.test(about(el.form))) || alone[0];

  const named = (el) => /username|email/.test(el.autocomplete) || NAME.test(words(el, "name", "id", "placeholder"));
  let username;
  if (password) {
    const beside = inputs.filter((el) => isName(el) && el.form === password.form);
    const before = beside.filter((el) => el.compareDocumentPosition(password) & Node.DOCUMENT_POSITION_FOLLOWING);
    username = before.find(named) || before[before.length - 1] || beside.find(named);
  } else {
    username = inputs.find((el) => isName(el) && named(el) && !OTHER.test(about(el.form)));
  }

  const form = (password || username || {}).form;
  const SUBMIT = "button[type=submit], button:not([type]), input[type=submit], input[type=image]";
  const buttons = [...(form || document).querySelectorAll(`${SUBMIT}, button, input[type=button]`)].filter(usable);
  const label = (el) => `${el.value || ""} ${el.textContent} ${words(el, "id", "name", "aria-label")}`;
  const sends = form ? buttons.filter((el) => el.matches(SUBMIT)) : [];
  const button = [...sends, ...buttons].find((el) => ONWARD.test(label(el))) || sends[0];

  const paths = [...document.querySelectorAll("a[href], form[action], [formaction]")].flatMap((el) => {
    try {
      return [new URL(el.getAttribute("formaction") || el.getAttribute("href") || el.getAttribute("action"), document.baseURI)];
    } catch {
      return [];
    }
  });
  const leave = new RegExp(logout);
  const found = { username: fresh(username), password: fresh(password) };
  if (found.password || found.username) {
    document.querySelectorAll(`[${MARK}=submit]`).forEach((el) => el.removeAttribute(MARK));
    if (found.username) mark(username, "username");
    if (found.password) mark(password, "password");
    mark(button, "submit");
  }
  return {
    username: Boolean(found.username),
    password: Boolean(found.password),
    button: Boolean(button),
    loggedIn: paths.some((url) => leave.test(url.pathname)) || (loggedIn !== "" && document.querySelector(loggedIn) !== null),
    refused: refused !== "" && [...document.querySelectorAll(refused)].some(usable),
    title: document.title,
    path: location.pathname,
  };
};
