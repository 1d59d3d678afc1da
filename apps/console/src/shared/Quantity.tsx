const FORMAT = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3 });

/** The number as the viewer writes it, with its unit in the right number: `1 memory`, `12,000 memories`. */
export function quantity(value: number, one: string, many = `${one}s`): string {
  return `${FORMAT.format(value)} ${value === 1 ? one : many}`;
}

export function Quantity({ value, one, many }: { value: number; one: string; many?: string }) {
  return <span className="number">{quantity(value, one, many)}</span>;
}

/** Tokens and calls that something cost at the engine. */
export function Cost({ usage }: { usage: { input_tokens?: number; output_tokens?: number; llm_calls?: number } }) {
  const tokens = (usage.input_tokens ?? 0) + (usage.output_tokens ?? 0);
  return (
    <span className="number faint" title={`${quantity(usage.input_tokens ?? 0, "input token")}, ${quantity(usage.output_tokens ?? 0, "output token")}`}>
      {quantity(tokens, "token")} · {quantity(usage.llm_calls ?? 0, "call")}
    </span>
  );
}
