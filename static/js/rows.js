// Choosing rows of a table by keyboard: arrows move between the boxes, x ticks the one at hand, Enter sends the form.
// <form data-rows> with a checkbox in each row
document.addEventListener("keydown", (event) => {
  const form = document.querySelector("form[data-rows]");
  if (!form || event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey) return;
  const at = document.activeElement;
  if (document.querySelector("dialog[open]") || at?.matches("input:not([type=checkbox]), textarea, select")) return;
  const boxes = [...form.querySelectorAll("tbody input[type=checkbox]")];
  const here = boxes.indexOf(at?.closest("tr")?.querySelector("input[type=checkbox]"));
  if (event.key === "x" && boxes.length) {
    const box = boxes[Math.max(here, 0)];
    box.checked = !box.checked;
    box.focus();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    const next = here < 0 ? 0 : here + (event.key === "ArrowDown" ? 1 : -1);
    boxes[Math.min(Math.max(next, 0), boxes.length - 1)]?.focus();
  } else if (event.key === "Enter" && at?.matches("form[data-rows] input[type=checkbox]")) {
    form.requestSubmit();
  } else return;
  event.preventDefault();
});
