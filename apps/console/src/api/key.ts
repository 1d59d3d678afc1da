/** The API key of this tab. It lives in the tab's session storage and never in an address. */
const NAME = "memloop.key";
const listeners = new Set<() => void>();

export function apiKey(): string | null {
  return sessionStorage.getItem(NAME);
}

export function setApiKey(key: string | null): void {
  if (key) sessionStorage.setItem(NAME, key);
  else sessionStorage.removeItem(NAME);
  for (const listener of listeners) listener();
}

export function onApiKey(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
