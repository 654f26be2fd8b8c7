// The starting point that a form was filled in from is the chosen one for as long as the form says what it said then.
const point = document.querySelector(".choice[aria-current][data-fills]");
const form = point && document.getElementById(point.dataset.fills);

// Neither the answer nor the reason belongs to a starting point.
const BESIDE = new Set(["csrfmiddlewaretoken", "token", "answered", "reason"]);
const filledIn = () => JSON.stringify([...new FormData(form)].filter(([name]) => !BESIDE.has(name)));

if (form) {
  const before = filledIn();
  const mark = () => {
    const isChosen = filledIn() === before;
    if (isChosen) point.setAttribute("aria-current", "true");
    else point.removeAttribute("aria-current");
    for (const each of point.querySelectorAll("[data-mark]")) each.hidden = (each.dataset.mark === "chosen") !== isChosen;
  };
  for (const event of ["input", "change", "htmx:after:swap"]) document.addEventListener(event, mark);
}
