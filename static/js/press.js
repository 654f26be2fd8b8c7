// Nothing moves from under a press: leaving a field asks for its answer, and an answer that pushes the page about
// between the press and the release would swallow the click. What arrives meanwhile waits for the release.
// Some releases are never told (on a scroll bar, in the list of a select): typing and choosing end a press as well,
// and nothing waits for longer than this.
const LONGEST_PRESS_MS = 5000;
let release = () => {};
let released = null; // settles when the press is over

addEventListener("pointerdown", () => {
  release();
  released = Promise.race([
    new Promise((over) => { release = over; }),
    new Promise((over) => setTimeout(over, LONGEST_PRESS_MS)),
  ]);
}, true);

// The click comes right after the release, before the next task.
for (const ending of ["pointerup", "pointercancel", "keydown", "input"]) addEventListener(ending, () => setTimeout(release), true);

document.addEventListener("htmx:before:request", ({ detail: { ctx } }) => {
  const fetch = ctx.fetch;
  ctx.fetch = async (...asked) => {
    const answer = await fetch(...asked);
    const read = answer.text.bind(answer);
    answer.text = async () => {
      const words = await read();
      await released;
      return words;
    };
    return answer;
  };
});
