import { Failure, Rows } from "../../shared";
import { useReadiness } from "../../layout/StackState";
import { size } from "../read/formats";
import { sumOf, type Sample } from "./metrics";
import { useMetrics } from "./useMetrics";

/** What the gateway depends on, and how much of its room is taken. */
export function Health() {
  const ready = useReadiness();
  const metrics = useMetrics();
  if (ready.isPending) return <Rows count={3} />;
  if (ready.isError) return <Failure error={ready.error} onRetry={() => void ready.refetch()} />;
  const parts = Object.entries(ready.data.dependencies ?? {});
  const warnings = Object.values(ready.data.warnings ?? {});
  return (
    <div className="stack">
      {warnings.map((warning) => (
        <p key={warning} className="notice warn text">
          {warning}
        </p>
      ))}
      <section className="card padded stack" aria-labelledby="parts-name">
        <h2 id="parts-name">Dependencies</h2>
        <ul className="parts">
          {parts.map(([name, state]) => (
            <li key={name} className="row wrap">
              <strong className="grow">{name}</strong>
              <span className={state === "ok" ? "tag good" : "tag bad"}>{state === "ok" ? "Available" : state}</span>
            </li>
          ))}
        </ul>
      </section>
      <section className="card padded stack" aria-labelledby="limits-name">
        <h2 id="limits-name">Limits in use</h2>
        {metrics.data?.samples ? <Limits samples={metrics.data.samples} /> : <NoMetrics isPending={metrics.isPending} />}
      </section>
    </div>
  );
}

export function NoMetrics({ isPending }: { isPending: boolean }) {
  if (isPending) return <p className="soft">Reading the metrics.</p>;
  return <p className="soft">The gateway does not serve /metrics on this port. Where MEMLOOP_METRICS_PORT is set, Prometheus reads them there.</p>;
}

function Limits({ samples }: { samples: readonly Sample[] }) {
  const fullness = sumOf(samples, "gateway_fullness_ratio") ?? 0;
  const rows: [string, string][] = [
    ["Requests of users now", count(samples, "gateway_active_requests", { lane: "interactive" })],
    ["Long reads and uploads now", count(samples, "gateway_active_requests", { lane: "batch" })],
    ["Bytes of request bodies now", size(sumOf(samples, "gateway_active_body_bytes") ?? 0)],
    ["Followers of reads now", count(samples, "longread_followers")],
    ["Refused: the process was full", count(samples, "gateway_refused_requests_total", { limit: "process" })],
    ["Refused: the tenant's share was full", count(samples, "gateway_refused_requests_total", { limit: "tenant" })],
    ["Failed calls of engines", count(samples, "upstream_errors_total")],
  ];
  return (
    <>
      <label className="field">
        <span className="row between">
          <span className="field-label">Load of this process</span>
          <span className="number">{Math.round(fullness * 100)} %</span>
        </span>
        <progress value={fullness} max={1} />
      </label>
      <dl className="facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd className="number">{value}</dd>
          </div>
        ))}
      </dl>
      <p className="faint">Numbers of the gateway process that served this page. Refusals and failures are since it began.</p>
    </>
  );
}

function count(samples: readonly Sample[], name: string, labels: Record<string, string> = {}): string {
  return (sumOf(samples, name, labels) ?? 0).toLocaleString();
}

