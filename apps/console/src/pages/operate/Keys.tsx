import { useInfiniteQuery, useMutation, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import { useAddress } from "../../address";
import { api, type Schema } from "../../api";
import { Dialog, Empty, Failure, Moment, Rows } from "../../shared";
import { NewKey, RotateKey, SecretDialog } from "./KeyDialogs";
import { TenantCard } from "./TenantCard";

export type ApiKey = Schema["ApiKey"];

const PAGE = 50;

/** The API keys of a tenant. */
export function Keys() {
  const [{ tenant }] = useAddress();
  const queries = useQueryClient();
  const [isNew, setIsNew] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const keys = useInfiniteQuery({
    queryKey: ["keys", tenant],
    queryFn: ({ pageParam, signal }) => api.get("/v1/admin/keys", { query: { tenant, cursor: pageParam, limit: PAGE }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  const made = (found: string) => {
    setIsNew(false);
    setSecret(found);
    void queries.invalidateQueries({ queryKey: ["keys"] });
  };
  const all = keys.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <TenantCard
      title="API keys"
      controls={
        <button type="button" className="button primary" onClick={() => setIsNew(true)}>
          New key
        </button>
      }
    >
      {keys.isPending && <Rows count={3} />}
      {keys.isError && <Failure error={keys.error} onRetry={() => void keys.refetch()} />}
      {keys.isSuccess && all.length === 0 && (
        <Empty title="No keys yet">
          <p>Keys that the operator configured are not listed here.</p>
        </Empty>
      )}
      <ul className="entries">
        {all.map((key) => (
          <KeyRow key={key.id} apiKey={key} onSecret={made} />
        ))}
      </ul>
      {keys.hasNextPage && (
        <button type="button" className="button" disabled={keys.isFetchingNextPage} onClick={() => void keys.fetchNextPage()}>
          More keys
        </button>
      )}
      {isNew && <NewKey tenant={tenant} onMade={made} onClose={() => setIsNew(false)} />}
      {secret && <SecretDialog secret={secret} onClose={() => setSecret(null)} />}
    </TenantCard>
  );
}

function KeyRow({ apiKey, onSecret }: { apiKey: ApiKey; onSecret: (secret: string) => void }) {
  const [asks, setAsks] = useState<"rotate" | "revoke" | null>(null);
  return (
    <li className="entry" aria-label={apiKey.name}>
      <div className="row between wrap">
        <strong className="text grow">{apiKey.name}</strong>
        <div className="row">
          <button type="button" className="button small" onClick={() => setAsks("rotate")}>
            Rotate
          </button>
          <button type="button" className="button small danger" onClick={() => setAsks("revoke")}>
            Revoke
          </button>
        </div>
      </div>
      <p className="row wrap">
        <span className="mono faint">{apiKey.prefix}…</span>
        {apiKey.scopes.map((scope) => (
          <span key={scope} className={scope === "admin" ? "tag violet" : "tag"}>
            {scope}
          </span>
        ))}
      </p>
      <p className="faint row wrap">
        <span>{apiKey.tenant}</span>
        <span>
          made <Moment at={apiKey.created_at} />
        </span>
        <span>{apiKey.last_used_at ? <>used <Moment at={apiKey.last_used_at} /></> : "never used"}</span>
        {apiKey.expires_at && (
          <span>
            expires <Moment at={apiKey.expires_at} />
          </span>
        )}
        {apiKey.overlap_until && (
          <span>
            old secret until <Moment at={apiKey.overlap_until} />
          </span>
        )}
      </p>
      {asks === "rotate" && <RotateKey apiKey={apiKey} onMade={(secret) => (setAsks(null), onSecret(secret))} onClose={() => setAsks(null)} />}
      {asks === "revoke" && <RevokeKey apiKey={apiKey} onClose={() => setAsks(null)} />}
    </li>
  );
}

function RevokeKey({ apiKey, onClose }: { apiKey: ApiKey; onClose: () => void }) {
  const queries = useQueryClient();
  const revoke = useMutation({
    mutationFn: () => api.delete("/v1/admin/keys/{key_id}", { path: { key_id: apiKey.id } }),
    onSuccess: () => {
      void queries.invalidateQueries({ queryKey: ["keys"] });
      onClose();
    },
  });
  return (
    <Dialog title="Revoke this key?" onClose={onClose}>
      <p className="text">
        Requests with the key <strong>{apiKey.name}</strong> are refused from now on. This cannot be undone.
      </p>
      {revoke.isError && <Failure error={revoke.error} small />}
      <div className="row end">
        <button type="button" className="button" onClick={onClose}>
          Keep it
        </button>
        <button type="button" className="button danger solid" disabled={revoke.isPending} onClick={() => revoke.mutate()}>
          Revoke
        </button>
      </div>
    </Dialog>
  );
}
