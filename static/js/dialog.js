// Dialogs and menus. Browsers with command/commandfor open dialogs themselves; this serves the others,
// closes a dialog on a click beside it, and closes an open menu on Escape, a click elsewhere or a Tab out of it.
document.documentElement.classList.add("has-script");
const native = "commandForElement" in HTMLButtonElement.prototype;

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[commandfor]");
  if (button && !native) {
    const dialog = document.getElementById(button.getAttribute("commandfor"));
    if (button.getAttribute("command") === "show-modal") dialog?.showModal();
    else dialog?.close();
  }
  if (event.target.matches("dialog.dialog")) event.target.close();
  const opening = event.target.closest("details.menu--up:not([open]) > summary")?.parentElement;
  if (opening) {
    // Opened here and not by the browser a moment later: the next key already belongs to its first field.
    event.preventDefault();
    opening.open = true;
    // A page that scrolls to the field would move the bar that was clicked; only what is out of sight is scrolled to.
    const field = opening.querySelector("textarea, input:not([type=hidden])");
    field?.focus({ preventScroll: true });
    if (field?.getBoundingClientRect().top < 0) field.scrollIntoView();
  }
  for (const menu of document.querySelectorAll("details[data-menu][open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

// Nothing has the focus where the window loses it, or where what had it is gone: the menu stays.
document.addEventListener("focusout", ({ target, relatedTarget }) => {
  const menu = relatedTarget && target.closest("details[data-menu][open]");
  if (menu && !menu.contains(relatedTarget)) menu.open = false;
});

document.addEventListener("keydown", (event) => {
  const menu = event.key === "Escape" && document.querySelector("details[data-menu][open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus({ preventScroll: true });
});
