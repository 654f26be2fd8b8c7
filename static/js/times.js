// Pages tell and take every moment in UTC. Where the reader's clock says something else, the browser tells what: on the
// hover of a moment, below a field that takes one, and at the foot of the page.
const HERE = " where you are";
const TIME = { hour: "2-digit", minute: "2-digit" };
const DAY = { weekday: "short", day: "numeric", month: "short" };

const clock = (at) => at.toLocaleTimeString("en-GB", TIME);
const minutesAhead = (at) => -at.getTimezoneOffset();

function here(at) {
  const year = at.getFullYear() === new Date().getFullYear() ? {} : { year: "numeric" };
  const day = at.toLocaleDateString("en-GB", { ...DAY, ...year }).replace(",", "");
  return `${day}, ${clock(at)}${HERE}`;
}

document.addEventListener("pointerover", (event) => {
  const time = event.target.closest?.("time[datetime]");
  if (!time?.title || time.title.endsWith(HERE)) return;
  const at = new Date(time.dateTime);
  if (!Number.isNaN(at.getTime()) && minutesAhead(at)) time.title += `; ${here(at)}`;
});

function takenBy(field) {
  if (field.type === "datetime-local") return [new Date(`${field.value}Z`), here];
  const today = new Date();
  today.setUTCHours(field.value, 0, 0, 0);
  return [today, (at) => `Today ${clock(at)}${HERE}`];
}

function tellBelow(field) {
  const told = document.getElementById(`${field.id}-here`);
  if (!told) return;
  const [at, words] = takenBy(field);
  told.hidden = Number.isNaN(at.getTime()) || !minutesAhead(at);
  told.textContent = told.hidden ? "" : words(at);
}

const TAKES_UTC = "input[type=datetime-local], select[data-utc-hour]";
const tellBelowAll = () => document.querySelectorAll(TAKES_UTC).forEach(tellBelow);

for (const event of ["input", "change"]) {
  document.addEventListener(event, ({ target }) => target.matches?.(TAKES_UTC) && tellBelow(target));
}
document.addEventListener("htmx:after:swap", tellBelowAll);
// After Back the browser fills fields in again once the page is shown.
addEventListener("pageshow", tellBelowAll);
tellBelowAll();

// "8 s ago" was so when the page was written, and goes on from there by the server's clock. As ui.formats writes it.
const writtenAt = Date.parse(document.body.dataset.now);
const clockIsOff = Date.now() - writtenAt;
const TICK_MS = 5000;

function span(seconds) {
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 48 * 3600 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86400)} days`;
}

function goOn() {
  if (document.hidden) return;
  const now = Date.now() - clockIsOff;
  for (const time of document.querySelectorAll("time[data-ago]")) {
    const seconds = Math.trunc((now - Date.parse(time.dateTime)) / 1000);
    const words = seconds < 0 ? `in ${span(-seconds)}` : `${span(seconds)} ago`;
    // What was to come and has come is not "ago" for a sentence about what comes.
    const text = seconds >= 0 && time.dataset.ago === "ahead" ? "now" : words;
    if (time.textContent !== text) time.textContent = text;
  }
}

if (writtenAt) {
  setInterval(goOn, TICK_MS);
  document.addEventListener("visibilitychange", goOn);
}

const ahead = minutesAhead(new Date());
const foot = document.getElementById("clock");
if (foot && ahead) {
  const [hours, minutes] = [Math.floor(Math.abs(ahead) / 60), Math.abs(ahead) % 60];
  const length = [hours && `${hours} h`, minutes && `${minutes} min`].filter(Boolean).join(" ");
  foot.textContent += ` Your clock is ${length} ${ahead > 0 ? "ahead" : "behind"}.`;
}
