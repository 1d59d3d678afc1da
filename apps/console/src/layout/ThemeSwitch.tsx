import { useState } from "react";
import { Icon } from "./Icon";
import { applyTheme, chosenTheme, type Theme } from "./theme";

const NEXT: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
const ICON = { system: "auto", light: "sun", dark: "moon" } as const;

export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosenTheme);
  const change = () => {
    applyTheme(NEXT[theme]);
    setTheme(NEXT[theme]);
  };
  return (
    <button type="button" className="button quiet square" onClick={change} aria-label={`Theme: ${theme}. Change to ${NEXT[theme]}`} title={`Theme: ${theme}`}>
      <Icon name={ICON[theme]} />
    </button>
  );
}
