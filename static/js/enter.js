// Enter in a field that searches while one types, inside a form that is about more, only searches.
// <input type="search" hx-get> in a <form method="post">; without script it presses the first button of the form.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !event.target.matches?.("form[method=post] input[type=search][hx-get]")) return;
  event.preventDefault();
  // What has just been typed is asked for at once.
  event.target.dispatchEvent(new Event("search"));
});
