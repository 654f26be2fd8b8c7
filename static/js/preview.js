// Forms whose answer follows them (hx-post with "change" among its triggers): ask for the answer again whenever the
// browser has filled in something by itself. After Back it restores what was typed, but the answer is that of before.
// And ask again while the form stays open: what was free before lunch may be taken after it.
const followed = () => document.querySelectorAll("form[hx-post][hx-trigger*='change']");

const isRestored = (field) => {
  if (field.type === "hidden" || !field.name) return false;
  if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
  if (field.options) return [...field.options].some((each) => each.defaultSelected && !each.selected);
  return "defaultValue" in field && field.value !== field.defaultValue;
};

const ask = (form) => form.dispatchEvent(new Event("change"));

// Browsers may fill the fields, and htmx may begin to listen, in a task after the page was shown.
const TRIES = 30;
const TRY_AGAIN_MS = 100;

function askWhereRestored(tries) {
  for (const form of followed()) {
    if (!form.hasAttribute("data-htmx-powered") || ![...form.elements].some(isRestored)) continue;
    ask(form);
    return;
  }
  if (tries > 0) setTimeout(askWhereRestored, TRY_AGAIN_MS, tries - 1);
}

addEventListener("pageshow", ({ persisted }) => {
  if (persisted) followed().forEach(ask);
  // Only a page that one came back to, or loaded again, has fields that somebody filled in before.
  else if (performance.getEntriesByType("navigation")[0]?.type !== "navigate") askWhereRestored(TRIES);
});
const AGAIN_MS = 60_000;
const askedByClock = new WeakSet();
const askInView = () => document.hidden || followed().forEach(ask);

document.addEventListener("session:back", () => followed().forEach(ask));
document.addEventListener("visibilitychange", askInView);

const clock = setInterval(() => {
  if (document.hidden) return;
  for (const form of followed()) {
    askedByClock.add(form);
    ask(form);
  }
}, AGAIN_MS);

// What the clock asks is nobody's work and keeps no session; where it is refused it would be again each minute.
document.addEventListener("htmx:config:request", ({ detail: { ctx } }) => {
  if (askedByClock.delete(ctx.sourceElement)) ctx.request.headers["QM-By-Clock"] = "true";
});
document.addEventListener("htmx:response:error", ({ detail: { ctx } }) => {
  if ([...followed()].includes(ctx.sourceElement)) clearInterval(clock);
});
