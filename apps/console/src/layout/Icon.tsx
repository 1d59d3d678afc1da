const PATHS = {
  memories: "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3Zm0 0v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3",
  decisions: "M12 3v6m0 0-6 6m6-6 6 6M6 15v6m12-6v6",
  read: "M4 5c3-1 6-.5 8 1v14c-2-1.5-5-2-8-1V5Zm16 0c-3-1-6-.5-8 1v14c2-1.5 5-2 8-1V5Z",
  chat: "M4 5h16v11H10l-5 4v-4H4V5Z",
  operate: "M4 20V10m5 10V4m6 16v-8m5 8V7",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8Zm0-6v2m0 16v2M2 12h2m16 0h2M5 5l1.4 1.4m11.2 11.2L19 19M19 5l-1.4 1.4M6.4 17.6 5 19",
  moon: "M20 14.5A8 8 0 1 1 9.5 4a6.5 6.5 0 0 0 10.5 10.5Z",
  auto: "M12 3a9 9 0 1 1 0 18 9 9 0 0 1 0-18Zm0 0v18M12 7h5m-5 5h8.5M12 17h5",
  key: "M8 11a4 4 0 1 1 0 8 4 4 0 0 1 0-8Zm3 1 9-9m-4 4 3 3m-6 0 2 2",
  search: "M10.5 4a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm5 11.5L20 20",
  close: "M6 6l12 12M18 6 6 18",
  send: "M4 12 20 4l-5 16-3.5-6.5L4 12Z",
  up: "M12 20V5m-6 6 6-6 6 6",
  down: "M12 4v15m-6-6 6 6 6-6",
  edit: "M4 20h4L19 9l-4-4L4 16v4Z",
  bin: "M5 7h14M10 7V4h4v3m-7 0 1 13h8l1-13",
  back: "M15 5l-7 7 7 7",
  again: "M20 11A8 8 0 1 0 18 17m2-11v5h-5",
} as const;
export type IconName = keyof typeof PATHS;

/** A decorative drawing: the text beside it, or its button's name, is what a screen reader reads. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg className="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" strokeWidth="1.8" strokeLinecap="round" strokeLinejoin="round" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}
