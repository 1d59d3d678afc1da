/** Prices that the viewer entered: per million tokens, in any currency. They stay in this browser. */

export interface Price {
  input: number;
  output: number;
}

const NAME = "memloop.prices";

function stored(): Record<string, Partial<Price>> {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(NAME) ?? "{}");
    return typeof found === "object" && found !== null ? (found as Record<string, Partial<Price>>) : {};
  } catch {
    return {};
  }
}

export function pricesOf(model: string): Price {
  const all = stored();
  const found = Object.hasOwn(all, model) ? all[model] : undefined;
  return { input: Number(found?.input) || 0, output: Number(found?.output) || 0 };
}

export function setPrice(model: string, price: Price): Price {
  localStorage.setItem(NAME, JSON.stringify({ ...stored(), [model]: price }));
  return price;
}
