export type Theme = "system" | "light" | "dark";
const NAME = "memloop.theme";

export function chosenTheme(): Theme {
  const theme = localStorage.getItem(NAME);
  return theme === "light" || theme === "dark" ? theme : "system";
}

/** Follow the system, unless the viewer chose light or dark. */
export function applyTheme(theme: Theme = chosenTheme()): void {
  if (theme === "system") {
    localStorage.removeItem(NAME);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(NAME, theme);
    document.documentElement.dataset.theme = theme;
  }
}
