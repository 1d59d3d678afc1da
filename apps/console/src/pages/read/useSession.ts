import { useState, useSyncExternalStore } from "react";
import { sessionOf, type Session } from "./session";

/** Follows a read while a component shows it. A read that runs in this tab goes on when no component does. */
class Shown {
  session: Session | null = null;

  constructor(private readonly readId: string) {}

  readonly subscribe = (listener: () => void) => {
    const session = (this.session = sessionOf(this.readId));
    const leave = session.onChange(listener);
    return () => {
      leave();
      if (!session.isForeground) session.stop();
    };
  };

  readonly version = () => this.session?.version ?? -1;
}

/** The session of a read; the component is drawn again with each batch of events. A component keeps its read. */
export function useSession(readId: string): Session | null {
  const [shown] = useState(() => new Shown(readId));
  useSyncExternalStore(shown.subscribe, shown.version);
  return shown.session;
}
