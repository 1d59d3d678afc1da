/** The statements of an answer, with the places in the document that support each. */
import type { Evidence } from "./highlights";

export interface Statement {
  text: string;
  source: Evidence["source"];
  supported: boolean;
  /** A sentence of the document that may say the same in other words: a place to look at, no support. */
  similar: string | null;
  /** Indices of its evidence, in the order of the API. */
  places: number[];
}

export interface AnswerRun {
  text: string;
  statement: Statement | null;
}

/** One statement per text and source: several places of a statement are several entries of evidence. */
export function statementsOf(evidence: readonly Evidence[]): Statement[] {
  const found = new Map<string, Statement>();
  evidence.forEach((entry, index) => {
    const key = `${entry.source}\n${entry.statement}`;
    const statement = found.get(key) ?? { text: entry.statement, source: entry.source, supported: false, similar: null, places: [] };
    found.set(key, statement);
    if (entry.similar) statement.similar = entry.text ?? null;
    if (!entry.supported) return;
    statement.supported = true;
    statement.places.push(index);
  });
  return [...found.values()];
}

/** The answer in runs, each with the statement that it is. Statements that the text does not contain are left out. */
export function answerRuns(answer: string, statements: readonly Statement[]): AnswerRun[] {
  const runs: AnswerRun[] = [];
  let at = 0;
  for (const statement of statements) {
    const start = statement.text ? answer.indexOf(statement.text, at) : -1;
    if (start < 0) continue;
    if (start > at) runs.push({ text: answer.slice(at, start), statement: null });
    at = start + statement.text.length;
    runs.push({ text: statement.text, statement });
  }
  if (at < answer.length) runs.push({ text: answer.slice(at), statement: null });
  return runs;
}
