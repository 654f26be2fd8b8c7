// Change the theme without loading the page again; without script the form posts and comes back.
// <form data-theme-form><button name="theme" value="dark">
document.addEventListener("submit", (event) => {
  const form = event.target.closest("form[data-theme-form]");
  if (!form || !event.submitter) return;
  event.preventDefault();
  const theme = event.submitter.value;
  document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-theme-form] button")) {
    button.setAttribute("aria-pressed", String(button.value === theme));
  }
  const body = new FormData(form, event.submitter);
  fetch(form.action, { method: "POST", body, redirect: "manual", credentials: "same-origin" });
});
