// Show a log as it is written: <section data-log="address"> with [data-log-lines], [data-log-state], [data-log-search],
// [data-log-follow] and [data-log-file] in [data-log-tools]. The stream goes on behind its last line by itself
// (Last-Event-ID); what is out of sight rests.
const MOST = 5000;
const STAYS_MS = 1000;
const section = document.querySelector("[data-log]");

function view(section) {
  const lines = section.querySelector("[data-log-lines]");
  const state = section.querySelector("[data-log-state]");
  const search = section.querySelector("[data-log-search]");
  const follow = section.querySelector("[data-log-follow]");
  const file = section.querySelector("[data-log-file]");
  const tools = section.querySelector("[data-log-tools]");
  let source = null;
  let last = "";
  let over = false;
  let isLost = false;
  let pending = [];

  // Of a log without lines there is nothing to download.
  file.hidden = true;

  const say = (text) => { if (state.textContent !== text) state.textContent = text; };
  const hides = (text) => search.value && !text.toLowerCase().includes(search.value.toLowerCase());

  function put() {
    const many = document.createDocumentFragment();
    for (const text of pending) {
      const line = document.createElement("span");
      line.textContent = `${text}\n`;
      line.hidden = Boolean(hides(text));
      many.append(line);
    }
    pending = [];
    file.hidden = isLost;
    lines.append(many);
    while (lines.childElementCount > MOST) lines.firstElementChild.remove();
    if (follow.checked) lines.scrollTop = lines.scrollHeight;
  }

  function add(text) {
    if (!pending.length) requestAnimationFrame(put);
    pending.push(text);
  }

  // A stream that only says why there is no log ends at once, and comes again.
  function sayIfItStays(opened) {
    if (opened === source && opened.readyState === EventSource.OPEN) say(lines.childElementCount ? "Live" : "No lines yet");
  }

  function listen() {
    if (source || over || document.hidden) return;
    const after = last ? `&after=${encodeURIComponent(last)}` : "";
    source = new EventSource(section.dataset.log + after);
    source.addEventListener("open", ({ target }) => setTimeout(sayIfItStays, STAYS_MS, target));
    source.addEventListener("message", ({ data, lastEventId }) => { last = lastEventId; add(data); say("Live"); });
    source.addEventListener("missed", ({ data }) => add(`… ${data} lines came too fast and are left out …`));
    source.addEventListener("live", () => say("Live"));
    source.addEventListener("waiting", ({ data }) => say(data));
    source.addEventListener("refused", ({ data }) => say(data));
    source.addEventListener("end", ({ data }) => {
      over = true;
      rest();
      say(data || "The program has ended.");
      finish(Boolean(data));
    });
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return;
      rest();
      say("The log does not answer. Load the page again.");
      document.dispatchEvent(new Event("session:doubt"));
    });
  }

  // Nothing comes any more; a log that is gone cannot be downloaded, and of one without lines there is nothing to see.
  function finish(isGone) {
    follow.closest("label").hidden = true;
    isLost = isGone;
    file.hidden = isGone || !lines.childElementCount;
    tools.hidden = lines.hidden = !lines.childElementCount && !pending.length;
  }

  function rest() {
    source?.close();
    source = null;
  }

  search.addEventListener("input", () => {
    for (const line of lines.children) line.hidden = Boolean(hides(line.textContent));
    if (follow.checked) lines.scrollTop = lines.scrollHeight;
  });
  follow.addEventListener("change", () => { if (follow.checked) lines.scrollTop = lines.scrollHeight; });
  // Whoever scrolls up reads: the log stays where they are until they come back to its end.
  lines.addEventListener("scroll", () => {
    follow.checked = lines.scrollHeight - lines.scrollTop - lines.clientHeight < 24;
  });
  document.addEventListener("visibilitychange", () => (document.hidden ? rest() : listen()));
  addEventListener("pagehide", rest);
  addEventListener("pageshow", listen);
  listen();
}

if (section) view(section);
