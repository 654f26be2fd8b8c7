// What the answer beside a form refuses describes its field, too: <li id="lack-gpus" data-lacks="id_gpus">.
// A field that nobody has filled in yet is not called wrong.
const ids = (field) => (field.getAttribute("aria-describedby") ?? "").split(" ").filter(Boolean);
const describe = (field, by) => {
  if (by.length) field.setAttribute("aria-describedby", by.join(" "));
  else field.removeAttribute("aria-describedby");
};

function forget(field) {
  describe(field, ids(field).filter((id) => id !== field.dataset.lack));
  if (field.dataset.lackInvalid) field.removeAttribute("aria-invalid");
  delete field.dataset.lack;
  delete field.dataset.lackInvalid;
}

function tell(lack) {
  const field = document.getElementById(lack.dataset.lacks);
  if (!field) return;
  describe(field, [...ids(field), lack.id]);
  field.dataset.lack = lack.id;
  if (!field.value || field.hasAttribute("aria-invalid")) return;
  field.setAttribute("aria-invalid", "true");
  field.dataset.lackInvalid = "true";
}

function tellAll() {
  document.querySelectorAll("[data-lack]").forEach(forget);
  document.querySelectorAll("[data-lacks]").forEach(tell);
}

document.addEventListener("htmx:after:swap", tellAll);
tellAll();
