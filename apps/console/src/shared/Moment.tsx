import { useEffect, useState } from "react";

const EXACT = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const RELATIVE = new Intl.RelativeTimeFormat(undefined, { numeric: "auto" });
const STEPS = [
  [60, "second", 1],
  [3600, "minute", 60],
  [86_400, "hour", 3600],
  [7 * 86_400, "day", 86_400],
] as const;

/** `3 minutes ago` within a week, else the date; in the viewer's language and zone. */
export function ago(at: Date, now: Date = new Date()): string {
  const seconds = (at.getTime() - now.getTime()) / 1000;
  for (const [below, unit, size] of STEPS) {
    if (Math.abs(seconds) < below) return RELATIVE.format(Math.round(seconds / size), unit);
  }
  return EXACT.format(at);
}

/** A time in the viewer's zone; the title has it in full. */
export function Moment({ at, exact = false }: { at: string | number | null | undefined; exact?: boolean }) {
  const [now, setNow] = useState(() => new Date());
  useEffect(() => {
    if (exact) return;
    const timer = setInterval(() => setNow(new Date()), 30_000);
    return () => clearInterval(timer);
  }, [exact]);
  if (at === null || at === undefined) return null;
  const time = new Date(typeof at === "number" ? at * 1000 : at);
  if (Number.isNaN(time.getTime())) return <span>{at}</span>;
  return (
    <time dateTime={time.toISOString()} title={FULL.format(time)}>
      {exact ? EXACT.format(time) : ago(time, now)}
    </time>
  );
}
