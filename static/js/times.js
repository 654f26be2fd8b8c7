// A moment's hover tells it where the reader is, too: pages and mails tell all of them in UTC.
const HERE = " where you are";

document.addEventListener("pointerover", (event) => {
  const time = event.target.closest?.("time[datetime]");
  if (!time?.title || time.title.endsWith(HERE)) return;
  const at = new Date(time.dateTime);
  if (Number.isNaN(at.getTime()) || at.getTimezoneOffset() === 0) return;
  const words = { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" };
  time.title += `; ${at.toLocaleString("en-GB", words)}${HERE}`;
});
