// Let a form be sent once: its buttons rest while the answer is on its way, so that nobody asks twice.
// <form data-submit-once>
const rest = (form, busy) => {
  for (const button of form.querySelectorAll("button:not([type=button])")) button.toggleAttribute("disabled", busy);
};

document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-submit-once]");
  if (!form || event.defaultPrevented) return;
  event.submitter?.setAttribute("aria-busy", "true");
  // After this task, so that the pressed button's own name and value are still sent.
  setTimeout(() => rest(form, true));
});

// The back button brings a page back as it was left; its forms must be usable again.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  for (const form of document.querySelectorAll("form[data-submit-once]")) {
    form.querySelectorAll("[aria-busy]").forEach((button) => button.removeAttribute("aria-busy"));
    rest(form, false);
  }
});
