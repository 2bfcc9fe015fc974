/* Silence: what a page or a worker tells its developers is read by nobody here.
 *
 * Owns `mute`, and that errors are not told either. Each line would be serialised and sent to the browser's driver, where a flood of them keeps every tab of
 * every slot waiting. A page finds the same functions, by name and by look. */

const quiet = {apply() {}};
const mute = ({console}) => {
  const {context} = console;
  for (const name of Object.keys(console)) {
    if (name !== "createTask" && typeof console[name] === "function") console[name] = new Proxy(console[name], quiet);
  }
  if (context) console.context = new Proxy(context, {apply: () => ({...console})});
};
mute(globalThis);

/* Errors that nobody catches reach the page's own listeners, and no console. */
for (const type of ["error", "unhandledrejection"]) addEventListener(type, event => { event.preventDefault(); });
