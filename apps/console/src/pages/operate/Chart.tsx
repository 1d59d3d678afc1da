import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

interface Line {
  name: string;
  values: readonly (number | null)[];
  /** What the legend says; by default the last value. */
  figure?: string;
}

interface Props {
  times: readonly number[];
  lines: readonly Line[];
  label: string;
  /** The scale ends at this value or above. */
  least?: number;
}

const COLOURS = ["--accent", "--good", "--warn", "--violet", "--bad"] as const;
const HEIGHT = 220;
/** The first readings are drawn in a time at least this long. */
const SHORTEST_S = 60;

/** Lines over time. The legend is text; the drawing itself is an image to a screen reader. */
export function Chart({ times, lines, label, least = 10 }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot>(null);
  const names = lines.map(({ name }) => name).join("\n");

  useEffect(() => {
    const element = place.current;
    if (!element) return;
    const drawn = (chart.current = new uPlot(optionsOf(element, names.split("\n"), least), [[]], element));
    const resized = new ResizeObserver(() => drawn.setSize({ width: element.clientWidth, height: HEIGHT }));
    resized.observe(element);
    return () => {
      resized.disconnect();
      drawn.destroy();
    };
  }, [names, least]);
  useEffect(() => {
    const last = times.at(-1) ?? 0;
    const before = last - (times[0] ?? 0) < SHORTEST_S ? [last - SHORTEST_S] : [];
    chart.current?.setData([[...before, ...times], ...lines.map(({ values }) => [...before.map(() => null), ...values])]);
  });

  return (
    <figure className="stack tight">
      <div ref={place} role="img" aria-label={label} className="chart" />
      <figcaption className="row wrap">
        {lines.map(({ name, values, figure }, index) => (
          <span key={name} className="tag">
            <span className="swatch" style={{ background: `var(${COLOURS[index % COLOURS.length]})` }} />
            {name} <span className="number">{figure ?? Math.round(values.at(-1) ?? 0).toLocaleString()}</span>
          </span>
        ))}
      </figcaption>
    </figure>
  );
}

function optionsOf(element: HTMLElement, names: readonly string[], least: number): uPlot.Options {
  const colour = (name: string) => resolved(element, name);
  const axis = { stroke: colour("--faint"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  return {
    width: element.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    scales: { y: { range: (_, __, most) => [0, Math.max(least, most * 1.1)] } },
    axes: [axis, { ...axis, size: 64 }],
    series: [{}, ...names.map((_, index) => ({ stroke: colour(COLOURS[index % COLOURS.length] ?? "--accent"), width: 2 }))],
  };
}

/** A canvas cannot read a variable, so the browser resolves it on an element first. */
function resolved(element: HTMLElement, name: string): string {
  const probe = element.appendChild(document.createElement("span"));
  probe.style.color = `var(${name})`;
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
