// Say it when a part of the page could not be fetched: what is shown stays as it was, for htmx is told (`noSwap` in
// parts/document_head.html) to swap nothing of an answer with such a status: there is a whole other page in it.
const OLD = "What you see here is from before. Load the page again to see how it is now.";
const REFUSED = { 403: OLD, 404: OLD, 409: OLD, 429: "Too many calls just now. What you see may be old." };
const said = () => document.querySelector("[data-status]");

function tell(text) {
  const line = said();
  // What is said already is not read out again at each try.
  if (!line || line.textContent === text) return;
  line.textContent = text;
  line.className = "message message--float";
  line.dataset.tone = "bad";
}

const quiet = (status) => {
  const line = said();
  if (status < 400 && line?.matches(".message--float")) {
    line.className = "sr-only";
    line.textContent = "";
  }
};

document.addEventListener("htmx:response:error", ({ detail }) => {
  const { status, headers } = detail.ctx.response;
  if (REFUSED[status]) tell(REFUSED[status]);
  if (status < 500) return;
  const id = headers.get("X-Request-Id");
  tell(`Quartermaster could not do that just now. Try again${id ? `, or quote ${id}` : ""}.`);
});
document.addEventListener("htmx:error", ({ detail }) => detail.ctx && tell("The connection is gone. What you see may be old."));
document.addEventListener("htmx:after:swap", ({ detail }) => quiet(detail.ctx?.response?.status));
