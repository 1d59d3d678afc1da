import { useVirtualizer } from "@tanstack/react-virtual";
import { useCallback, useEffect, useRef, type ReactNode } from "react";

interface Props<T> {
  items: readonly T[];
  /** In a long list the same function at every drawing: another one has all rows placed again. */
  idOf: (item: T) => string;
  children: (item: T, index: number) => ReactNode;
  label: string;
  /** An estimate of a row's height in pixels; rows are measured. */
  rowPx?: number;
  /** Called when the end comes into view. */
  onEnd?: (() => void) | undefined;
  /** The row that is kept in view. */
  current?: number | undefined;
}

/** A scrolling list that draws only the rows in view, so that 100,000 rows stay smooth. */
export function VirtualList<T>({ items, idOf, children, label, rowPx = 72, onEnd, current }: Props<T>) {
  const scroller = useRef<HTMLDivElement>(null);
  const rows = useVirtualizer({
    count: items.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: 8,
    getItemKey: useCallback((index: number) => idOf(items[index] as T), [items, idOf]),
  });
  const shown = rows.getVirtualItems();
  const last = shown.at(-1)?.index ?? -1;
  useEffect(() => {
    if (items.length > 0 && last >= items.length - 1) onEnd?.();
  }, [last, items.length, onEnd]);
  useEffect(() => {
    if (current !== undefined && current >= 0) rows.scrollToIndex(current, { align: "auto" });
  }, [current, rows]);
  return (
    <div ref={scroller} className="virtual" role="list" aria-label={label} tabIndex={0}>
      <div className="virtual-all" style={{ height: rows.getTotalSize() }}>
        {shown.map((row) => (
          <div key={row.key} ref={rows.measureElement} data-index={row.index} role="listitem" aria-setsize={items.length} aria-posinset={row.index + 1} className="virtual-row" style={{ transform: `translateY(${row.start}px)` }}>
            {children(items[row.index] as T, row.index)}
          </div>
        ))}
      </div>
    </div>
  );
}
