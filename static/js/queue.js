// A list that scrolls by itself shows the row one is at: <nav data-queue> with a row that is aria-current.
function show() {
  const queue = document.querySelector("[data-queue]");
  const row = queue?.querySelector("[aria-current]");
  if (row) queue.scrollTop = row.offsetTop - queue.offsetTop - (queue.clientHeight - row.offsetHeight) / 2;
}

show();
document.addEventListener("htmx:after:swap", show);
