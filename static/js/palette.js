// The command palette: Ctrl K or ⌘ K opens <dialog id="palette">; arrows choose, Enter goes. htmx fetches the results.
const palette = document.querySelector("#palette");
const field = palette?.querySelector("[role=combobox]");
const results = palette?.querySelector("[role=listbox]");
const count = palette?.querySelector("[role=status]");
const options = () => [...results.querySelectorAll("[role=option]")];
// What is listed answers what was typed before, until the next answer comes.
let isStale = false;
let goesOnceListed = false;
// Answers that were lost one after the other, and the next try; each waits twice as long as the one before.
const MOST_TRIES = 5;
let lost = 0;
let nextTry = 0;

// The list for what is in the field; what is listed meanwhile is that of before.
function fetchAgain() {
  isStale = true;
  field.dispatchEvent(new Event("again"));
}

function forgetLost() {
  clearTimeout(nextTry);
  lost = 0;
}

function open() {
  if (palette.open) return;
  palette.showModal();
  field.select();
  fetchAgain();
}

// An answer that failed, or never came: without another try an empty list would stay empty until something is typed.
function retry({ response }) {
  const mayHeal = !response || response.status === 429 || response.status >= 500;
  if (!mayHeal || !palette.open || lost === MOST_TRIES) return;
  clearTimeout(nextTry);
  nextTry = setTimeout(fetchAgain, 500 * 2 ** lost);
  lost += 1;
}

function choose(index) {
  const all = options();
  if (!all.length) return void field.removeAttribute("aria-activedescendant");
  const at = (index + all.length) % all.length;
  all.forEach((option, number) => {
    option.id ||= `palette-${number}`;
    option.setAttribute("aria-selected", String(number === at));
  });
  field.setAttribute("aria-activedescendant", all[at].id);
  all[at].scrollIntoView({ block: "nearest" });
}

const chosen = () => options().findIndex((option) => option.getAttribute("aria-selected") === "true");
const go = () => options()[chosen()]?.click();
const moves = {
  ArrowDown: () => choose(chosen() + 1),
  ArrowUp: () => choose(chosen() - 1),
  Enter: () => { if (isStale) goesOnceListed = true; else go(); },
};

function list() {
  isStale = false;
  forgetLost();
  choose(0);
  const found = options().filter((option) => !option.hasAttribute("aria-disabled")).length;
  count.textContent = found === 1 ? "1 found" : `${found || "Nothing"} found`;
  if (goesOnceListed) go();
  goesOnceListed = false;
}

if (palette) {
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      open();
    }
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest("[data-palette-open]")) return;
    event.preventDefault();
    open();
  });
  field.addEventListener("keydown", (event) => {
    if (!moves[event.key]) return;
    event.preventDefault();
    moves[event.key]();
  });
  palette.querySelector("form").addEventListener("submit", (event) => event.preventDefault());
  field.addEventListener("input", () => { isStale = true; goesOnceListed = false; forgetLost(); });
  palette.addEventListener("close", () => { goesOnceListed = false; forgetLost(); });
  for (const failure of ["htmx:error", "htmx:response:error"]) {
    document.addEventListener(failure, ({ detail }) => detail.ctx?.sourceElement === field && retry(detail.ctx));
  }
  document.addEventListener("htmx:after:swap", ({ detail: { ctx } }) => {
    // It comes after a failure, too, of which nothing was swapped.
    if (ctx.sourceElement === field && ctx.response?.status < 400) list();
  });
}
