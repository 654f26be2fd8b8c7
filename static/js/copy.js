// Copy a value: <button data-copy="req_01J…">. Says so in the page's status line.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const said = document.querySelector("[data-status]");
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
  } catch {
    if (said) said.textContent = "Could not copy. Select the text and copy it by hand.";
    return;
  }
  if (said) said.textContent = "Copied.";
  button.classList.add("is-copied");
  setTimeout(() => button.classList.remove("is-copied"), 1500);
});
