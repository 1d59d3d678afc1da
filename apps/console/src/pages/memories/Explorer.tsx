import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { useAddress } from "../../address";
import { useEvents, useItems, useSearch, type Hit, type Item, type Space } from "../../data/memories";
import { Icon } from "../../layout/Icon";
import { ChosenUser, Empty, Failure, Quantity, Rows, useKeys, VirtualList } from "../../shared";
import { Actions } from "./Actions";
import { Detail } from "./Detail";
import { Namespaces } from "./Namespaces";
import { ItemRow, TurnRow } from "./rows";
import { Waiting } from "./Waiting";

const TYPING_MS = 250;

/** One user's memories: search or list on one side, the chosen one with its history on the other. */
export function Explorer({ user }: { user: string }) {
  const [address, change] = useAddress();
  const space: Space = useMemo(() => ({ user, agent: address.agent, run: address.run }), [user, address.agent, address.run]);
  const query = address.q ?? "";
  const raw = address.raw === "yes";
  const history = address.history === "yes";
  const listed = useItems(space, query === "");
  const found = useSearch(space, { query, raw, history });
  const events = useEvents(space);
  const hits: readonly Hit[] | undefined = query ? found.data?.results : undefined;
  const pages = query ? undefined : listed.data?.pages;
  const items: readonly Item[] = useMemo(() => hits?.map(({ item }) => item) ?? pages?.flatMap((page) => page.items) ?? [], [hits, pages]);
  const hasItem = Boolean(address.item);
  const at = useMemo(() => (address.item ? items.findIndex(({ id }) => id === address.item) : -1), [items, address.item]);
  const field = useRef<HTMLInputElement>(null);
  const go = (step: number) => {
    const next = items[Math.min(items.length - 1, Math.max(0, at + step))];
    if (next) change({ item: next.id }, { replace: Boolean(address.item) });
  };
  useKeys({ "/": () => field.current?.select(), j: () => go(1), ArrowDown: () => go(1), k: () => go(at < 0 ? 1 : -1), ArrowUp: () => go(at < 0 ? 1 : -1), Escape: address.item ? () => change({ item: undefined }) : undefined });
  const open = useCallback((item: string) => change({ item }, { replace: hasItem }), [change, hasItem]);
  const state = query ? found : listed;
  return (
    <div className={`page full explorer ${address.item ? "has-item" : ""}`}>
      <div className="page-head">
        <div className="row">
          <h1>Memories</h1>
          <ChosenUser user={user} />
        </div>
        <Actions space={space} />
      </div>
      <div className="explorer-search">
        <SearchField field={field} query={query} onQuery={(q) => change({ q: q || undefined }, { replace: true })} />
        <Check label="Raw turns" on={raw} disabled={!query} onChange={(on) => change({ raw: on ? "yes" : undefined }, { replace: true })} />
        <Check label="Superseded" on={history} disabled={!query} onChange={(on) => change({ history: on ? "yes" : undefined }, { replace: true })} />
        <Namespaces items={items} space={space} onChoose={(agent, run) => change({ agent, run })} />
      </div>
      <div className="explorer-body">
        <section className="card explorer-list" aria-label={query ? "Search results" : "All memories"} aria-busy={state.isFetching}>
          {!query && <Waiting space={space} events={events.data?.events ?? []} />}
          {query && found.data?.pending && found.data.pending.length > 0 && (
            <div className="waiting">
              <h2 className="list-title">Not decided yet</h2>
              {found.data.pending.slice(0, 5).map((turn, index) => (
                <TurnRow key={index} turn={turn} status={turn.status} />
              ))}
            </div>
          )}
          {found.data?.pending_complete === false && <p className="notice warn">The queue did not answer in time. Turns that wait may be missing here.</p>}
          <h2 className="list-title row between">
            <span>{query ? "Best matches" : "Memories"}</span>
            {!state.isPending && (
              <span className="faint" role="status">
                <Quantity value={items.length} one={query ? "hit" : "memory"} many={query ? "hits" : "memories"} />
                {!query && listed.hasNextPage && " so far"}
              </span>
            )}
          </h2>
          <div className="explorer-rows">
            {state.isError ? (
              <Failure error={state.error} onRetry={() => void state.refetch()} />
            ) : state.isPending ? (
              <Rows />
            ) : items.length === 0 ? (
              <Nothing query={query} />
            ) : (
              <VirtualList items={items} idOf={idOf} label={query ? "Search results" : "Memories"} rowPx={query ? 112 : 84} current={at} onEnd={!query && listed.hasNextPage && !listed.isFetching ? () => void listed.fetchNextPage() : undefined}>
                {(item, index) => <ItemRow item={item} hit={hits?.[index]} isOpen={item.id === address.item} onOpen={open} />}
              </VirtualList>
            )}
          </div>
        </section>
        <aside className="card explorer-detail" aria-label="The chosen memory">
          {address.item ? (
            <Detail key={address.item} id={address.item} events={events.data?.events ?? []} onClose={() => change({ item: undefined })} onOpen={(item) => change({ item })} />
          ) : (
            <Empty title="Choose a memory">
              <p>Its versions, the rule behind each, and the turns that it came from are shown here.</p>
              <p className="faint keys">
                <kbd>/</kbd> search <kbd>j</kbd> next <kbd>k</kbd> previous <kbd>Esc</kbd> close
              </p>
            </Empty>
          )}
        </aside>
      </div>
    </div>
  );
}

function idOf({ id }: Item): string {
  return id;
}

function SearchField({ field, query, onQuery }: { field: React.RefObject<HTMLInputElement | null>; query: string; onQuery: (query: string) => void }) {
  const [text, setText] = useState(query);
  useEffect(() => {
    if (text.trim() === query) return;
    const timer = setTimeout(() => onQuery(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }); // every render: the newest text and address count
  return (
    <div className="search" role="search">
      <Icon name="search" />
      <input ref={field} type="search" value={text} onChange={(event) => setText(event.target.value)} placeholder="Search, as a chat would recall" aria-label="Search memories" />
    </div>
  );
}

function Check({ label, on, disabled, onChange }: { label: string; on: boolean; disabled: boolean; onChange: (on: boolean) => void }) {
  return (
    <label className="check">
      <input type="checkbox" checked={on} disabled={disabled} onChange={(event) => onChange(event.target.checked)} />
      {label}
    </label>
  );
}

function Nothing({ query }: { query: string }) {
  return query ? (
    <Empty title="Nothing found">
      <p>No memory of this user comes near these words. Raw turns may still hold them: tick the box above.</p>
    </Empty>
  ) : (
    <Empty title="Nothing is remembered">
      <p>This user has no memories here. Writes that failed or were ignored are on the page Decisions.</p>
    </Empty>
  );
}
