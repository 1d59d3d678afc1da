import type { ReactNode } from "react";

/** A labelled form field. */
export function Field({ label, hint, children }: { label: string; hint?: string; children: ReactNode }) {
  return (
    <label className="field">
      <span className="field-label">{label}</span>
      {children}
      {hint && <span className="faint">{hint}</span>}
    </label>
  );
}
