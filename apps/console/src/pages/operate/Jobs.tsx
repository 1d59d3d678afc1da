import { useInfiniteQuery, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useAddress } from "../../address";
import { api, type Schema } from "../../api";
import { Empty, Failure, Moment, quantity, Rows } from "../../shared";
import { TenantCard } from "./TenantCard";

type Letter = Schema["DeadLetterEntry"];

const REFRESH_MS = 5_000;
const PAGE = 50;
const QUEUES: Record<string, string> = { memory: "Memory writes", reads: "Background reads", files: "Files", webhooks: "Webhooks", responses: "Background responses", "vector-stores": "Vector stores" };

export function Jobs() {
  return (
    <div className="stack">
      <Queues />
      <DeadLetters />
    </div>
  );
}

/** The jobs of all tenants that are not finished. */
function Queues() {
  const queues = useQuery({ queryKey: ["queues"], queryFn: ({ signal }) => api.get("/v1/admin/queues", { signal }), refetchInterval: REFRESH_MS });
  return (
    <section className="card padded stack" aria-labelledby="queues-name">
      <h2 id="queues-name">Queues</h2>
      {queues.isPending && <Rows count={2} />}
      {queues.isError && <Failure error={queues.error} small />}
      <dl className="facts">
        {queues.data?.data.map(({ queue, jobs, oldest_created_at: oldest, tenants_waiting: tenants }) => (
          <div key={queue}>
            <dt>{QUEUES[queue] ?? queue}</dt>
            <dd className="number">
              {quantity(jobs, "job")}
              {tenants > 0 && <span className="faint"> · {quantity(tenants, "tenant")} waiting</span>}
              {oldest && (
                <span className="faint">
                  {" "}
                  · oldest <Moment at={oldest} />
                </span>
              )}
            </dd>
          </div>
        ))}
      </dl>
    </section>
  );
}

/** Jobs of a tenant that failed on their last attempt. */
function DeadLetters() {
  const [{ tenant }] = useAddress();
  const letters = useInfiniteQuery({
    queryKey: ["dead-letters", tenant],
    queryFn: ({ pageParam, signal }) => api.get("/v1/admin/dead-letters", { query: { tenant, cursor: pageParam, limit: PAGE }, signal }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
    refetchInterval: REFRESH_MS,
  });
  const all = letters.data?.pages.flatMap((page) => page.data) ?? [];
  return (
    <TenantCard title="Dead letters">
      {letters.isPending && <Rows count={2} />}
      {letters.isError && <Failure error={letters.error} onRetry={() => void letters.refetch()} />}
      {letters.isSuccess && all.length === 0 && !letters.hasNextPage && (
        <Empty title="No dead letters">
          <p>A job that fails on its last attempt waits here.</p>
        </Empty>
      )}
      <ul className="entries">
        {all.map((letter) => (
          <LetterRow key={letter.job_id} letter={letter} />
        ))}
      </ul>
      {letters.hasNextPage && (
        <button type="button" className="button" disabled={letters.isFetchingNextPage} onClick={() => void letters.fetchNextPage()}>
          More dead letters
        </button>
      )}
    </TenantCard>
  );
}

function LetterRow({ letter }: { letter: Letter }) {
  const queries = useQueryClient();
  const put = useMutation({
    mutationFn: () => api.post("/v1/admin/dead-letters/{job_id}/requeue", { path: { job_id: letter.job_id } }),
    onSuccess: () => queries.invalidateQueries({ queryKey: ["dead-letters"] }),
  });
  return (
    <li className="entry" aria-label={letter.job_id}>
      <div className="row between wrap">
        <span className="mono text grow">{letter.job_id}</span>
        {letter.can_requeue ? (
          <button type="button" className="button small" disabled={put.isPending} onClick={() => put.mutate()}>
            Put back
          </button>
        ) : (
          <span className="faint">Only a memory write can be put back</span>
        )}
      </div>
      <p className="text">{letter.error}</p>
      <p className="faint">
        {letter.tenant}
        {letter.user_id && ` / ${letter.user_id}`} · failed <Moment at={letter.failed_at} />
      </p>
      {put.isError && <Failure error={put.error} small />}
    </li>
  );
}
