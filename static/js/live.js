// Keep what is on the page true. The server says only "changed request-17"; every element with
// data-live~="request-17" then gets the event "refresh", on which its own hx-get fetches it again.
const address = document.body.dataset.events;
let source = null;
// What changed between the writing of the page and the first listening counts as missed, too.
let missed = true;

// <… data-live-unless="input:checked"> waits with its refresh while somebody is in the middle of something there.
const isBusy = (element) => element.dataset.liveUnless && element.querySelector(element.dataset.liveUnless);
const refresh = (element) => isBusy(element) || window.htmx?.trigger(element, "refresh");

function changed(name) {
  document.querySelectorAll(`[data-live~="${CSS.escape(name)}"]`).forEach(refresh);
}

function listen() {
  if (source || document.hidden) return;
  source = new EventSource(address);
  source.addEventListener("open", () => {
    // Whatever happened while nobody listened was not told: look once at everything.
    if (missed) document.querySelectorAll("[data-live]").forEach(refresh);
    missed = false;
  });
  source.addEventListener("error", () => {
    missed = true;
    // Closed for good: the server refused to be listened to, most often because the session has ended.
    if (source?.readyState === EventSource.CLOSED) document.dispatchEvent(new Event("session:doubt"));
  });
  source.addEventListener("message", ({ data }) => data.startsWith("changed ") && changed(data.slice(8).trim()));
}

function rest() {
  source?.close();
  source = null;
  missed = true;
}

if (address && document.querySelector("[data-live]")) {
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
  addEventListener("pagehide", rest);
  addEventListener("pageshow", listen);
  document.addEventListener("session:back", () => { rest(); listen(); });
  listen();
}
