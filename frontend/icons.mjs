// The Lucide icons that templates may use: `{% icon "name" %}`. Add a name here, then `npm run build`.
export const icons = [
  // frame
  "house", "inbox", "users", "server", "stamp", "scale", "scroll-text", "search", "sun", "moon", "monitor",
  "log-out", "ellipsis", "keyboard", "circle-user-round", "chevron-down", "chevron-left", "chevron-right",
  "chevrons-up-down", "arrow-right", "external-link", "menu", "bell", "book-open", "settings",
  // actions
  "plus", "minus", "copy", "check", "x", "undo-2", "refresh-cw", "list-filter", "pencil", "trash-2", "send",
  "message-circle-question-mark", "download", "code", "file-code", "play", "square",
  // states
  "hourglass", "circle-dashed", "loader-circle", "circle-check", "sunset", "circle-x", "archive", "triangle-alert",
  "info", "circle-help", "ban", "lock", "circle", "circle-dot",
  // things
  "cpu", "gpu", "box", "gauge", "clock", "calendar", "calendar-clock", "wallet", "key-round", "network", "folder",
  "shield-check", "user-round", "building-2", "hard-drive", "zap", "history", "tag", "git-commit-horizontal",
];
