import { Fragment } from "react";
import type { Output } from "./formats";
import type { Pass } from "./log";
import type { Session } from "./session";

/** The passes as a tree: each question, and below it the sub-questions for which the document was read again. */
export function Passes({ session, outputs }: { session: Session; outputs: readonly Output[] }) {
  const { passes } = session.log;
  if (passes.length === 0) return null;
  return (
    <section className="card padded stack tight" aria-labelledby="passes-name">
      <h2 id="passes-name">Passes over the document</h2>
      <ul className="tree">
        {outputs.map((output, index) => {
          const own = passes.filter((pass) => pass.questionIndex === index);
          const [first, ...rereads] = own;
          if (!first) return <Fragment key={index} />;
          return (
            <li key={index}>
              <PassLine pass={first} title={output.question || "The question"} />
              {rereads.length > 0 && (
                <ul>
                  {rereads.map((pass) => (
                    <li key={pass.number}>
                      <PassLine pass={pass} title={pass.question ?? ""} />
                      <SubAnswer answer={output.subquestions[pass.number - 2]?.answer} />
                    </li>
                  ))}
                </ul>
              )}
            </li>
          );
        })}
      </ul>
    </section>
  );
}

function PassLine({ pass, title }: { pass: Pass; title: string }) {
  const isDone = pass.total > 0 && pass.done >= pass.total;
  return (
    <div className="stack tight">
      <p className="row between">
        <span className="text">
          <span className={pass.number > 1 ? "tag violet" : "tag accent"}>{pass.number > 1 ? `Reread ${pass.number - 1}` : "First pass"}</span> {title}
        </span>
        <span className="faint number nowrap">
          {pass.done.toLocaleString()} / {pass.total.toLocaleString()}
        </span>
      </p>
      {!isDone && pass.total > 0 && <progress value={pass.done} max={pass.total} aria-label={`Chunks read for: ${title}`} />}
    </div>
  );
}

function SubAnswer({ answer }: { answer: string | undefined }) {
  if (answer === undefined) return null;
  return <p className="text sub-answer">{answer || <span className="faint">No answer</span>}</p>;
}
