import { useInfiniteQuery } from "@tanstack/react-query";
import { useAddress } from "../../address";
import { api, type Schema } from "../../api";
import { Empty, Failure, Moment, Rows, VirtualList } from "../../shared";
import { TenantCard } from "./TenantCard";

type Entry = Schema["AuditRecord"];

const PAGE = 100;
const KINDS = { admin: "Changes", denied: "Denied requests", unauthenticated: "Unknown keys" } as const;
const ACTIONS: Record<Entry["action"], string> = {
  "key.created": "Key made",
  "key.rotated": "Secret rotated",
  "key.revoked": "Key revoked",
  "traces.enabled": "Traces turned on",
  "traces.disabled": "Traces turned off",
  "traces.exported": "Traces exported",
  "memory_policy.changed": "Memory policy set",
  "memory_policy.deleted": "Memory policy deleted",
  "memory_webhook.created": "Memory webhook added",
  "memory_webhook.deleted": "Memory webhook deleted",
  "rollout.changed": "Candidate's share set",
  "rollout.ended": "Rollout ended",
  denied: "Denied",
};

/** Who changed keys, traces and policies, and which requests were denied. */
export function Audit() {
  const [{ kind, tenant }, setAddress] = useAddress();
  const shown = kind && kind in KINDS ? (kind as keyof typeof KINDS) : "admin";
  const log = useInfiniteQuery({
    queryKey: ["audit", shown, tenant],
    queryFn: ({ pageParam, signal }) => api.get("/v1/admin/audit", { query: { kind: shown, tenant: shown === "unauthenticated" ? undefined : tenant, cursor: pageParam, limit: PAGE }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const entries = log.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <TenantCard
      title="Audit log"
      controls={
        <select aria-label="Kind" className="kind" value={shown} onChange={(event) => setAddress({ kind: event.target.value })}>
          {Object.entries(KINDS).map(([value, name]) => (
            <option key={value} value={value}>
              {name}
            </option>
          ))}
        </select>
      }
    >
      {log.isPending && <Rows count={5} />}
      {log.isError && <Failure error={log.error} onRetry={() => void log.refetch()} />}
      {log.isSuccess && entries.length === 0 && (
        <Empty title="No entries">
          <p>Changes of keys and denied requests appear here.</p>
        </Empty>
      )}
      {entries.length > 0 && (
        <div className="audit-list">
          <VirtualList items={entries} idOf={(entry) => entry.id} label="Audit entries" rowPx={70} onEnd={() => void (log.hasNextPage && !log.isFetchingNextPage && log.fetchNextPage())}>
            {(entry) => <AuditRow entry={entry} />}
          </VirtualList>
        </div>
      )}
    </TenantCard>
  );
}

function AuditRow({ entry }: { entry: Entry }) {
  return (
    <div className="entry">
      <p className="row wrap">
        <strong>{ACTIONS[entry.action]}</strong>
        {entry.status > 0 && <span className="tag warn number">{entry.status}</span>}
        {entry.code && <span className="tag">{entry.code}</span>}
        {entry.count > 1 && <span className="tag number">{entry.count.toLocaleString()} times</span>}
        <span className="grow" />
        <span className="faint">
          <Moment at={entry.at} />
        </span>
      </p>
      <p className="faint text mono">{[entry.target, entry.method, entry.route, entry.actor_key && `by ${entry.actor_tenant}/${entry.actor_key}`, entry.address && `from ${entry.address}`].filter(Boolean).join(" · ")}</p>
    </div>
  );
}
