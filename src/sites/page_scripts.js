/* What makes pages hard, for any page of a site that includes this script. A page says what it wants by attributes:
 *
 *   data-menu                 its [data-menu-list] is shown only while the pointer or the keyboard's focus is in it
 *   input data-suggest=URL    what is typed is looked up at URL + text, which answers with a JSON list of texts;
 *                             choosing one fills the field in
 *   form data-confirm=TEXT    sending the form is asked for once more in a dialog
 *   data-later=URL            its text is replaced, data-delay milliseconds after the page is there, by what URL says
 *
 * Without scripts menus stay open, fields take any text, forms are sent at once, and what is inside [data-later]
 * stays: pages must make sense like that, too. */
(() => {
  const SUGGEST_AFTER_MS = 150;

  for (const menu of document.querySelectorAll("[data-menu]")) {
    const list = menu.querySelector("[data-menu-list]");
    list.hidden = true;
    document.addEventListener("mouseover", event => { list.hidden = !menu.contains(event.target); });
    document.addEventListener("focusin", event => {
      if (event.target.matches(":focus-visible")) list.hidden = !menu.contains(event.target);
    });
    menu.addEventListener("keydown", event => { if (event.key === "Escape") list.hidden = true; });
  }

  const offer = (input, list, texts) => {
    list.replaceChildren(...texts.map(text => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = text;
      button.addEventListener("click", () => { input.value = text; list.replaceChildren(); input.focus(); });
      return button;
    }));
  };
  for (const input of document.querySelectorAll("input[data-suggest]")) {
    const list = document.createElement("div");
    list.className = "suggestions";
    input.after(list);
    let timer = 0, asked = 0;
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(async () => {
        const number = ++asked;
        const answer = await fetch(input.dataset.suggest + encodeURIComponent(input.value));
        const texts = answer.ok ? await answer.json() : [];
        if (number === asked) offer(input, list, texts);
      }, SUGGEST_AFTER_MS);
    });
  }

  const ask = form => {
    const dialog = document.createElement("div"), question = document.createElement("p");
    const asked = document.activeElement, close = () => { dialog.remove(); asked?.focus(); };
    dialog.setAttribute("role", "dialog");
    question.textContent = form.dataset.confirm;
    dialog.append(question);
    for (const [name, sure] of [["Cancel", false], ["Confirm", true]]) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = name;
      button.addEventListener("click", () => {
        close();
        if (sure) { form.dataset.sure = ""; form.requestSubmit(); }
      });
      dialog.append(button);
    }
    document.querySelector("[role=dialog]")?.remove();
    document.body.append(dialog);
    dialog.addEventListener("keydown", event => { if (event.key === "Escape") close(); });
    dialog.querySelector("button").focus();
  };
  for (const form of document.querySelectorAll("form[data-confirm]")) {
    form.addEventListener("submit", event => {
      if ("sure" in form.dataset) return;
      event.preventDefault();
      ask(form);
    });
  }

  for (const place of document.querySelectorAll("[data-later]")) {
    place.textContent = "Loading";
    setTimeout(async () => {
      const answer = await fetch(place.dataset.later);
      place.textContent = answer.ok ? await answer.text() : "This could not be loaded. Open the page again.";
    }, Number(place.dataset.delay ?? 0));
  }
})();
