// Nothing moves from under a press: leaving a field asks for its answer, and an answer that pushes the page about
// between the press and the release would swallow the click. What arrives meanwhile waits for the release.
// Some releases are never told (on a scroll bar, in the list of a select): typing and choosing end a press as well,
// and nothing waits for longer than this.
const LONGEST_PRESS_MS = 5000;
const pressed = new Map(); // by pointer: how its press ends, and the promise of its end

function press({ pointerId, button }) {
  if (button !== 0) return;
  pressed.get(pointerId)?.end();
  let end;
  const over = new Promise((settle) => { end = settle; });
  const one = { end, over };
  pressed.set(pointerId, one);
  setTimeout(end, LONGEST_PRESS_MS);
  over.then(() => { if (pressed.get(pointerId) === one) pressed.delete(pointerId); });
}

// The click comes right after the release, before the next task.
const release = ({ pointerId }) => setTimeout(() => pressed.get(pointerId)?.end());
const releaseAll = () => setTimeout(() => pressed.forEach((one) => one.end()));

addEventListener("pointerdown", press, true);
for (const ending of ["pointerup", "pointercancel"]) addEventListener(ending, release, true);
for (const ending of ["keydown", "input", "contextmenu"]) addEventListener(ending, releaseAll, true);

document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
  const fetch = ctx.fetch;
  ctx.fetch = async (...asked) => {
    const answer = await fetch(...asked);
    const read = answer.text.bind(answer);
    answer.text = async () => {
      const words = await read();
      while (pressed.size) await [...pressed.values()][0].over;
      // A newer question has taken its place meanwhile.
      if (ctx.request.signal?.aborted) throw new DOMException("A newer one was asked.", "AbortError");
      return words;
    };
    return answer;
  };
});
