import { useState } from "react";
import { Empty, Field, quantity } from "../../shared";
import { Chart } from "./Chart";
import { NoMetrics } from "./Health";
import { ratesOf, tokensByModel, type Tokens } from "./metrics";
import { TenantUsage } from "./TenantUsage";
import { pricesOf, setPrice, type Price } from "./prices";
import { useMetrics } from "./useMetrics";

const MONEY = new Intl.NumberFormat(undefined, { maximumFractionDigits: 4 });

export function Usage() {
  return (
    <div className="stack">
      <TenantUsage />
      <ProcessUsage />
    </div>
  );
}

/** Tokens of each model since the gateway began, their rate while the page is open, and their cost. */
function ProcessUsage() {
  const { data, isPending } = useMetrics();
  if (!data?.samples) return <NoMetrics isPending={isPending} />;
  const models = [...tokensByModel(data.samples)].sort(([one], [other]) => one.localeCompare(other));
  if (models.length === 0) {
    return (
      <Empty title="No tokens yet">
        <p>The tokens of each model appear here after its first call.</p>
      </Empty>
    );
  }
  return (
    <div className="stack">
      <section className="card padded stack" aria-labelledby="rate-name">
        <h2 id="rate-name">Tokens per minute</h2>
        <Chart times={data.readings.map(({ atS }) => atS)} lines={models.map(([model]) => ({ name: model, values: ratesOf(data.readings, model) }))} label="Tokens per minute of each model" />
        <p className="faint">Since this page was loaded, one reading every 5 seconds. Prometheus keeps longer histories.</p>
      </section>
      <section className="card padded stack" aria-labelledby="tokens-name">
        <h2 id="tokens-name">All tenants, since the process began</h2>
        {models.map(([model, tokens]) => (
          <ModelUsage key={model} model={model} tokens={tokens} />
        ))}
        <p className="faint">From the metrics, which name no tenant. Prices stay in this browser.</p>
      </section>
    </div>
  );
}

function ModelUsage({ model, tokens }: { model: string; tokens: Tokens }) {
  const [price, setShown] = useState<Price>(() => pricesOf(model));
  const change = (changes: Partial<Price>) => setShown((now) => setPrice(model, { ...now, ...changes }));
  const cost = (tokens.input * price.input + tokens.output * price.output) / 1_000_000;
  return (
    <div className="model-usage">
      <div className="grow stack tight">
        <strong className="mono text">{model || "unknown model"}</strong>
        <span className="soft number">
          {quantity(tokens.input, "token")} in · {quantity(tokens.output, "token")} out
        </span>
      </div>
      <Field label="Price of 1 M input">
        <input type="number" min={0} step="any" value={price.input || ""} placeholder="0" onChange={(event) => change({ input: event.target.valueAsNumber || 0 })} />
      </Field>
      <Field label="Price of 1 M output">
        <input type="number" min={0} step="any" value={price.output || ""} placeholder="0" onChange={(event) => change({ output: event.target.valueAsNumber || 0 })} />
      </Field>
      <div className="cost">
        <span className="field-label">Cost</span>
        <span className="number">{cost > 0 ? MONEY.format(cost) : "–"}</span>
      </div>
    </div>
  );
}
