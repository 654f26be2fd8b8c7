// Tells who does not see the page what changed on it by itself, and what has just been done.
// <… data-announce="name"> is said when its words, or those of the notice in it, are others than under that name before.
const line = document.getElementById("announced");
const FORGOTTEN_AFTER_MS = 10_000;
const before = new Map();
let forgetting = 0;

const wordsOf = (element) => (element.querySelector(".notice__title") ?? element).textContent.replace(/\s+/g, " ").trim();

function say(words) {
  line.textContent = words;
  clearTimeout(forgetting);
  // Said once, it is not read again by whoever reads the page from its top.
  forgetting = setTimeout(() => { line.textContent = ""; }, FORGOTTEN_AFTER_MS);
}

function look() {
  const news = [];
  for (const element of document.querySelectorAll("[data-announce]")) {
    const [name, words] = [element.dataset.announce, wordsOf(element)];
    if (before.has(name) && before.get(name) !== words) news.push(words);
    before.set(name, words);
  }
  if (news.length) say(news.join(" "));
}

if (line) {
  document.addEventListener("htmx:after:swap", look);
  look();
  // What stands in a status line as a page comes is not read: it has to come into it afterwards.
  addEventListener("load", () => setTimeout(() => {
    for (const message of document.querySelectorAll(".messages .message")) message.replaceWith(message.cloneNode(true));
  }));
}
