// The session: says on the page when it has ended, keeps what was typed, and goes on when its person is back.
// <body data-session="/session" data-person="7"> is a page of somebody; data-tell="signed-in" tells the other tabs.
const { session: address, person, tell } = document.body.dataset;
const banner = document.querySelector("[data-signed-out]");
const tabs = new BroadcastChannel("quartermaster-session");
// A form that is sent this long after the server last knew us is sent only when it still does.
const TRUSTED_MS = 20_000;
const RETRY_MS = 5_000;
const LOST = "You were signed out. What you typed is kept.";
const LOST_WITH_FORM = "You were signed out. Nothing was sent yet: it is sent as soon as you are signed in again.";
const OTHER = "Somebody else signed in meanwhile. Nothing on this page can be sent; reload it to go on as they.";

let known = Date.now();
let waiting = null; // the form that was to be sent, and the button that sends it
let retry = 0;

const isOut = () => banner && !banner.hidden;

function show(words, link = true) {
  banner.querySelector("[data-signed-out-words]").textContent = words;
  banner.querySelector("a").hidden = !link;
  banner.hidden = false;
}

function ended() {
  show(waiting ? LOST_WITH_FORM : LOST);
  clearTimeout(retry);
  retry = setTimeout(() => (document.hidden ? null : check()), RETRY_MS);
}

function send({ form, submitter }) {
  waiting = null;
  if (form.isConnected) form.requestSubmit(submitter?.isConnected ? submitter : null);
}

function holds(token) {
  known = Date.now();
  for (const field of document.querySelectorAll("input[name=csrfmiddlewaretoken]")) field.value = token;
  if (isOut()) {
    banner.hidden = true;
    document.dispatchEvent(new Event("session:back"));
  }
  if (waiting) send(waiting);
}

async function check() {
  let state;
  try {
    state = await (await fetch(address, { cache: "no-store", credentials: "same-origin" })).json();
  } catch {
    // Nobody knows: the form goes its ordinary way, and what comes of it is the server's answer.
    if (waiting && !isOut()) {
      known = Date.now();
      send(waiting);
    }
    return;
  }
  if (!state.signed_in) ended();
  else if (state.person === person) holds(state.token);
  else {
    waiting = null;
    show(OTHER, false);
  }
}

function hold(event) {
  const form = event.target;
  if (form.getAttribute("method")?.toLowerCase() !== "post" || form.matches("[data-theme-form]")) return;
  if (!isOut() && Date.now() - known < TRUSTED_MS) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  waiting = { form, submitter: event.submitter };
  check();
}

if (address && banner) {
  document.addEventListener("submit", hold, true);
  document.addEventListener("htmx:response:error", ({ detail }) => detail.ctx.response.status === 401 && check());
  document.addEventListener("htmx:after:swap", () => { if (!isOut()) known = Date.now(); });
  document.addEventListener("session:doubt", check);
  document.addEventListener("visibilitychange", () => document.hidden || check());
  addEventListener("pageshow", (event) => event.persisted && check());
  tabs.addEventListener("message", check);
}
if (address || tell) tabs.postMessage(tell ?? "signed-in");
