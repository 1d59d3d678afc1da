import { useQuery } from "@tanstack/react-query";
import { useAddress } from "../../address";
import { api } from "../../api";
import { Empty, Failure, quantity, Rows } from "../../shared";
import { Chart } from "./Chart";
import { money, SPANS, spentByModel, timesOf, type ModelSpent, type Span } from "./spans";
import { TenantCard } from "./TenantCard";

const REFRESH_MS = 30_000;

/** A tenant's tokens and their cost by model over time, as the gateway counted them. */
export function TenantUsage() {
  const [{ tenant, span: asked, show }, setAddress] = useAddress();
  const span: Span = asked && asked in SPANS ? (asked as Span) : "day";
  const { by } = SPANS[span];
  const usage = useQuery({
    queryKey: ["usage", tenant, span],
    queryFn: async ({ signal }) => {
      const times = timesOf(span, Date.now() / 1000);
      const { data } = await api.get("/v1/admin/usage", { query: { tenant, by, after: times[0] }, signal });
      return { times, models: spentByModel(data, times) };
    },
    refetchInterval: REFRESH_MS,
  });
  return (
    <TenantCard
      title="Tokens and cost over time"
      controls={
        <>
          <Choice label="Time" options={Object.entries(SPANS).map(([name, { label }]) => [name, label])} chosen={span} onChoose={(name) => setAddress({ span: name })} />
          <Choice label="Figure" options={[["tokens", "Tokens"], ["cost", "Cost"]]} chosen={show === "cost" ? "cost" : "tokens"} onChoose={(name) => setAddress({ show: name })} />
        </>
      }
    >
      {usage.isPending && <Rows count={4} />}
      {usage.isError && <Failure error={usage.error} onRetry={() => void usage.refetch()} />}
      {usage.isSuccess && <Spent times={usage.data.times} models={usage.data.models} step={by} cost={show === "cost"} />}
    </TenantCard>
  );
}

interface ChoiceProps {
  label: string;
  options: readonly (readonly [string, string])[];
  chosen: string;
  onChoose: (name: string) => void;
}

function Choice({ label, options, chosen, onChoose }: ChoiceProps) {
  return (
    <div className="segments" role="group" aria-label={label}>
      {options.map(([name, text]) => (
        <button key={name} type="button" className={name === chosen ? "segment is-on" : "segment"} aria-pressed={name === chosen} onClick={() => onChoose(name)}>
          {text}
        </button>
      ))}
    </div>
  );
}

function Spent({ times, models, step, cost }: { times: number[]; models: ModelSpent[]; step: string; cost: boolean }) {
  if (models.length === 0) {
    return (
      <Empty title="Nothing was spent">
        <p>The tokens of the tenant's chats, reads and memory writes appear here a second after each call.</p>
      </Empty>
    );
  }
  const lines = models.map((spent) => ({ name: spent.model || "unknown model", values: cost ? spent.costs : spent.tokens, figure: cost ? money(spent.cost) : quantity(spent.input + spent.output, "token") }));
  return (
    <>
      <Chart times={times} lines={lines} least={cost ? 0.001 : 10} label={`${cost ? "Cost" : "Tokens"} of each model by the ${step}`} />
      <ul className="entries" aria-label="Spent by model">
        {models.map((spent) => (
          <li key={spent.model} className="entry">
            <strong className="mono text">{spent.model || "unknown model"}</strong>
            <span className="soft number">
              {quantity(spent.calls, "call")} · {quantity(spent.input, "token")} in · {quantity(spent.output, "token")} out · cost {money(spent.cost)}
            </span>
          </li>
        ))}
      </ul>
      {models.some((spent) => spent.cost === null) && <p className="faint">A model has a cost once the gateway&apos;s setting MEMLOOP_PRICES names its prices.</p>}
    </>
  );
}
