// Let a form be sent once: its buttons rest while the answer is on its way, so that nobody asks twice.
// <form data-submit-once>
const rest = (form, busy) => {
  // Also those that stand elsewhere and name the form.
  for (const each of form.elements) if (each.matches("button:not([type=button])")) each.toggleAttribute("disabled", busy);
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
    for (const each of form.elements) each.removeAttribute("aria-busy");
    rest(form, false);
  }
});
