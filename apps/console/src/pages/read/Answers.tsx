import { useAddress } from "../../address";
import type { Output } from "./formats";
import { isOver, type LongRead } from "./log";
import type { Session } from "./session";
import { answerRuns, statementsOf, type Statement } from "./statements";

interface Props {
  session: Session;
  read: LongRead;
  outputs: readonly Output[];
  index: number;
}

/** The answer to the chosen question, and what supports it. */
export function Answers({ session, read, outputs, index }: Props) {
  const [, setAddress] = useAddress();
  const output = outputs[index] as Output;
  const answer = output.output_text || (session.log.answers.get(index) ?? "");
  const statements = statementsOf(output.evidence);
  const inAnswer = statements.filter(({ source }) => source === "output_text");
  const inMemory = statements.filter(({ source }) => source === "memory");
  return (
    <section className="card padded stack" aria-labelledby="answer-name">
      <h2 id="answer-name">Answer</h2>
      {outputs.length > 1 && (
        <select aria-label="Question" value={index} onChange={(event) => setAddress({ q: event.target.value, at: undefined }, { replace: true })}>
          {outputs.map(({ question }, number) => (
            <option key={number} value={number}>
              {number + 1}. {question}
            </option>
          ))}
        </select>
      )}
      <div aria-live="polite">
        {answer ? <AnswerText answer={answer} statements={inAnswer} /> : <p className="faint">{isOver(read.status) ? "There is no answer." : "The answer follows when the document is read."}</p>}
      </div>
      <Statements title="Statements of the answer" statements={inAnswer} />
      <Statements title="Statements of the notes" statements={inMemory} isFolded={inAnswer.length > 0} />
    </section>
  );
}

function AnswerText({ answer, statements }: { answer: string; statements: readonly Statement[] }) {
  return (
    <p className="text answer">
      {answerRuns(answer, statements).map(({ text, statement }, index) => (
        <span key={index} className={statement ? (statement.supported ? "is-supported" : "is-unsupported") : undefined} title={statement && !statement.supported ? "The document has no place that supports this" : undefined}>
          {text}
        </span>
      ))}
    </p>
  );
}

function Statements({ title, statements, isFolded = false }: { title: string; statements: readonly Statement[]; isFolded?: boolean }) {
  if (statements.length === 0) return null;
  const unsupported = statements.filter(({ supported }) => !supported).length;
  return (
    <details className="more" open={!isFolded}>
      <summary>
        {title} <span className="faint number">{unsupported === 0 ? `all ${statements.length} supported` : `${unsupported} of ${statements.length} unsupported`}</span>
      </summary>
      <ul className="statements">
        {statements.map((statement, index) => (
          <li key={index}>
            <span className="text">{statement.text}</span>
            {statement.supported ? <Places places={statement.places} /> : <span className="tag warn">No support found</span>}
            {statement.similar && <p className="faint">Similar: “{statement.similar}”</p>}
          </li>
        ))}
      </ul>
    </details>
  );
}

function Places({ places }: { places: readonly number[] }) {
  const [{ at }, setAddress] = useAddress();
  return (
    <span className="row wrap">
      {places.map((place, index) => (
        <button key={place} type="button" className="button small" aria-pressed={at === String(place)} onClick={() => setAddress({ at: String(place), view: "document" }, { replace: true })}>
          Show place{places.length > 1 ? ` ${index + 1}` : ""}
        </button>
      ))}
    </span>
  );
}
