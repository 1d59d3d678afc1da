import { cleanup, render, screen } from "@testing-library/react";
import { afterEach, expect, test } from "vitest";
import type { Hit, Item } from "../../data/memories";
import { Explain, sharesOf } from "./Explain";
import { placesOf } from "./Namespaces";
import { ItemRow, TurnRow } from "./rows";

afterEach(cleanup);

const ITEM: Item = {
  id: "1",
  memory: "Ann lives in York.",
  key: "home",
  memory_type: "UserMemory",
  user_id: "ann",
  valid_from: "2026-05-01T00:00:00Z",
  created_at: "2026-05-01T00:00:00Z",
  updated_at: "2026-05-01T00:00:00Z",
  hash: "",
  version: 1,
  status: "activated",
  tags: [],
  metadata: {},
  sources: [],
  times: [],
};
const BREAKDOWN = { dense_rank: 1, dense_score: 0.9, sparse_rank: 3, sparse_score: 4.2, dense: 0.9, sparse: 0.21, asking: -0.05 };

test("the parts of a score are its shares, with their ranks, and not the raw scores", () => {
  expect(sharesOf(BREAKDOWN)).toEqual([
    { name: "dense", label: "meaning", value: 0.9, rank: 1 },
    { name: "sparse", label: "words", value: 0.21, rank: 3 },
    { name: "asking", label: "only asks", value: -0.05, rank: undefined },
  ]);
});

test("a hit shows what each ranking and boost gave", () => {
  const hit: Hit = { item: ITEM, score: 1.06, score_breakdown: BREAKDOWN };
  const { container } = render(<Explain hit={hit} />);
  expect(container.textContent).toBe("1.060meaning +0.900 rank 1words +0.210 rank 3only asks −0.050");
});

test("markup in a memory is shown as text", () => {
  const hostile = '<img src=x onerror="alert(1)">';
  render(<ItemRow item={{ ...ITEM, memory: hostile, tags: [hostile], agent_id: hostile }} hit={undefined} isOpen={false} onOpen={() => undefined} />);
  expect(screen.getByText(hostile)).toBeTruthy();
  expect(document.querySelector("img")).toBeNull();
});

test("a turn shows who said it, by name or else by role", () => {
  const turn = { role: "user", content: "I adopted a dog." };
  const { container } = render(
    <>
      <TurnRow turn={{ ...turn, name: "Caroline" }} status="queued" />
      <TurnRow turn={turn} status="queued" />
    </>,
  );
  expect([...container.querySelectorAll(".turn-role")].map((who) => who.textContent)).toEqual(["Caroline", "user"]);
});

test("the namespaces of a list are counted, the fullest first", () => {
  const items = [ITEM, { ...ITEM, agent_id: "a" }, { ...ITEM, agent_id: "a" }, { ...ITEM, agent_id: "a", run_id: "r" }];
  expect(placesOf(items)).toEqual([
    { agent: "a", run: undefined, count: 2 },
    { agent: undefined, run: undefined, count: 1 },
    { agent: "a", run: "r", count: 1 },
  ]);
});
