import { useEffect, useId, useRef, type ReactNode } from "react";
import { Icon } from "../layout/Icon";

/** A modal dialog; Escape and a click beside it close it. The browser keeps the focus inside. */
export function Dialog({ title, onClose, children, wide = false }: { title: string; onClose: () => void; children: ReactNode; wide?: boolean }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const name = useId();
  useEffect(() => {
    const shown = dialog.current;
    if (shown && !shown.open) shown.showModal();
    return () => shown?.close();
  }, []);
  return (
    <dialog ref={dialog} className={wide ? "dialog wide" : "dialog"} aria-labelledby={name} onCancel={onClose} onClick={(event) => event.target === dialog.current && onClose()}>
      <div className="dialog-body">
        <div className="row between">
          <h2 id={name}>{title}</h2>
          <button type="button" className="button quiet square" onClick={onClose} aria-label="Close">
            <Icon name="close" />
          </button>
        </div>
        {children}
      </div>
    </dialog>
  );
}
