import type { ReactNode } from "react";
import { asApiError } from "../api";
import { KeyButton } from "../layout/KeyButton";

/** Nothing to show, and what to do about it. */
export function Empty({ title, children }: { title: string; children?: ReactNode }) {
  return (
    <div className="state">
      <h2>{title}</h2>
      {children}
    </div>
  );
}

/** A failed request: what went wrong, and the way out. */
export function Failure({ error, onRetry, small = false }: { error: unknown; onRetry?: (() => void) | undefined; small?: boolean }) {
  const failure = asApiError(error);
  return (
    <div className={small ? "notice bad" : "state bad"} role="alert">
      {!small && <h2>{titleOf(failure.status, failure.code)}</h2>}
      <p>{failure.message}</p>
      {adviceFor(failure.status) && <p className="soft">{adviceFor(failure.status)}</p>}
      <div className="row center">
        {failure.status === 401 && <KeyButton label="Enter an API key" />}
        {onRetry && failure.status !== 401 && (
          <button type="button" className="button" onClick={onRetry}>
            Try again
          </button>
        )}
      </div>
      {failure.requestId && !small && <p className="faint mono">{failure.requestId}</p>}
    </div>
  );
}

function titleOf(status: number, code: string): string {
  if (code === "unreachable") return "No answer";
  if (status === 401) return "An API key is needed";
  if (status === 403) return "The key may not do this";
  if (status === 404) return "Not found";
  if (status === 503) return "Something is down";
  return "That did not work";
}

function adviceFor(status: number): string {
  if (status === 403) return "Use a key with the scope that the message names.";
  if (status === 503) return "The light at the top shows which part is down. The page works again once it is back.";
  return "";
}

/** Says what is being loaded. Where the progress is known, give it as a share from 0 to 1. */
export function Loading({ what, share }: { what: string; share?: number }) {
  return (
    <div className="state quiet" role="status">
      <p>Loading {what} …</p>
      {share !== undefined && <progress value={share} max={1} aria-label={`Loading ${what}`} />}
    </div>
  );
}

/** Grey rows in the place of a list that is being loaded, so that the page does not jump. */
export function Rows({ count = 6 }: { count?: number }) {
  return (
    <div className="ghost-rows" role="status" aria-label="Loading">
      {Array.from({ length: count }, (_, index) => (
        <div key={index} className="ghost" />
      ))}
    </div>
  );
}
