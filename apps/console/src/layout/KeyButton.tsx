import { useState, useSyncExternalStore, type FormEvent } from "react";
import { apiKey, onApiKey, setApiKey } from "../api";
import { Dialog, Field } from "../shared";
import { Icon } from "./Icon";

export function useApiKey(): string | null {
  return useSyncExternalStore(onApiKey, apiKey);
}

/** Opens the dialog in which the viewer enters an API key. */
export function KeyButton({ label }: { label?: string }) {
  const key = useApiKey();
  const [open, setOpen] = useState(false);
  return (
    <>
      <button type="button" className={label ? "button primary" : "button quiet square"} onClick={() => setOpen(true)} aria-label={label ?? (key ? "API key: set. Change it" : "API key: none. Set one")} title="API key">
        <Icon name="key" />
        {label}
        {!label && key && <span className="dot" />}
      </button>
      {open && <KeyDialog onClose={() => setOpen(false)} />}
    </>
  );
}

function KeyDialog({ onClose }: { onClose: () => void }) {
  const key = useApiKey();
  const [text, setText] = useState("");
  const save = (event: FormEvent) => {
    event.preventDefault();
    setApiKey(text.trim() || null);
    onClose();
  };
  return (
    <Dialog title="API key" onClose={onClose}>
      <form onSubmit={save} className="stack">
        <p className="soft">The key stays in this tab and is sent to this gateway only. Closing the tab forgets it. The local stack needs none.</p>
        <Field label="Key">
          <input type="password" autoComplete="off" spellCheck={false} value={text} onChange={(event) => setText(event.target.value)} placeholder={key ? "A key is set" : ""} />
        </Field>
        <div className="row end">
          {key && (
            <button type="button" className="button" onClick={() => (setApiKey(null), onClose())}>
              Forget the key
            </button>
          )}
          <button type="submit" className="button primary" disabled={!text.trim()}>
            Use this key
          </button>
        </div>
      </form>
    </Dialog>
  );
}
