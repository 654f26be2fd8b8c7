// Keys for what is on the page: data-key="a" or data-key="g r" on a link, button or field. Off while typing.
// "?" lists them in <dialog id="shortcuts">, where [data-keys-switch] switches single letters off for this browser.
const KEPT = "keys";
let prefix = "";
let forget = 0;

const visible = (element) => element.checkVisibility?.() ?? element.offsetParent !== null;
const keyed = () => [...document.querySelectorAll("[data-key]")];
const typed = "input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable]";
const typing = (target) => target.closest?.(typed) !== null;
const words = (element) => element.dataset.keyLabel ?? element.getAttribute("aria-label") ?? element.textContent.trim();

function press(key) {
  const found = keyed().filter((element) => element.dataset.key === key);
  const element = found.find(visible) ?? found[0];
  if (!element) return false;
  if (element.matches("input, textarea, select")) element.focus();
  else element.click();
  return true;
}

const areOff = () => localStorage.getItem(KEPT) === "off";

function overlay() {
  const list = document.querySelector("#shortcuts [data-shortcut-list]");
  if (!list) return;
  const seen = new Set();
  const rows = keyed().filter((element) => !seen.has(element.dataset.key) && seen.add(element.dataset.key));
  list.replaceChildren(...rows.map((element) => {
    const row = document.createElement("li");
    const key = document.createElement("kbd");
    key.className = "key";
    key.textContent = element.dataset.key.split(" ").join(" then ");
    row.append(words(element).replace(/\s+/g, " "), key);
    return row;
  }));
  document.querySelector("[data-keys-switch]").checked = !areOff();
  document.querySelector("#shortcuts").showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || typing(event.target)) return;
  if (areOff() || document.querySelector("dialog[open]")) return;
  if (event.key === "?") return void (event.preventDefault(), overlay());
  clearTimeout(forget);
  const pressed = prefix ? `${prefix} ${event.key}` : event.key;
  prefix = !prefix && event.key === "g" ? "g" : "";
  if (prefix) forget = setTimeout(() => { prefix = ""; }, 1200);
  else if (press(pressed)) event.preventDefault();
});
document.addEventListener("click", (event) => {
  if (event.target.closest("[data-shortcuts-open]")) overlay();
});
document.addEventListener("change", ({ target }) => {
  if (target.matches("[data-keys-switch]")) localStorage.setItem(KEPT, target.checked ? "on" : "off");
});
