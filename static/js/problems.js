// Say it when a part of the page could not be fetched: what is shown stays as it was.
const said = () => document.querySelector("[data-status]");

function tell(text) {
  const line = said();
  if (!line) return;
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
  if (status < 500) return;
  const id = headers.get("X-Request-Id");
  tell(`Quartermaster could not do that just now. Try again${id ? `, or quote ${id}` : ""}.`);
});
document.addEventListener("htmx:error", ({ detail }) => detail.ctx && tell("The connection is gone. What you see may be old."));
document.addEventListener("htmx:after:swap", ({ detail }) => quiet(detail.ctx?.response?.status));
