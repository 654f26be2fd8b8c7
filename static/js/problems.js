// Say it when a part of the page could not be fetched: what is shown stays as it was, for htmx is told (`noSwap` in
// parts/document_head.html) to swap nothing of an answer with such a status: there is a whole other page in it.
const OLD = "What you see here is from before. Load the page again to see how it is now.";
const REFUSED = { 403: OLD, 404: OLD, 409: OLD, 429: "Too many calls just now. What you see may be old." };
const said = () => document.querySelector("[data-status]");
// The parts of the page that are from before. What is said of one holds whatever comes of the others.
const old = new Set();

function tell(text, part) {
  const line = said();
  if (part) old.add(part);
  // What is said already is not read out again at each try.
  if (!line || line.textContent === text) return;
  line.textContent = text;
  line.className = "message message--float";
  line.dataset.tone = "bad";
}

// What is too large for its answer is too large to be sent: the buttons rest until the next answer brings new ones.
function refuse(form) {
  tell(form.dataset.tooLarge ?? "This is too large to be sent. Nothing was changed.", form);
  for (const each of form.elements ?? []) if (each.matches(".button[type=submit]")) each.disabled = true;
}

function renewed(part) {
  old.delete(part);
  // What has left the page is old no more.
  old.forEach((each) => each.isConnected || old.delete(each));
  const line = said();
  if (old.size || !line?.matches(".message--float")) return;
  line.className = "sr-only";
  line.textContent = "";
}

document.addEventListener("htmx:response:error", ({ detail }) => {
  const { response: { status, headers }, sourceElement } = detail.ctx;
  if (REFUSED[status]) tell(REFUSED[status], sourceElement);
  if (status === 413) refuse(sourceElement);
  if (status < 500) return;
  const id = headers.get("X-Request-Id");
  tell(`Quartermaster could not do that just now. Try again${id ? `, or quote ${id}` : ""}.`, sourceElement);
});
document.addEventListener("htmx:error", ({ detail }) => {
  if (detail.ctx) tell("The connection is gone. What you see may be old.", detail.ctx.sourceElement);
});
document.addEventListener("htmx:after:swap", ({ detail }) => {
  if (detail.ctx?.response?.status < 400) renewed(detail.ctx.sourceElement);
});
