import { Field } from "../../shared";
import { Icon } from "../../layout/Icon";

const MOST = 32;

/** One or more questions; all share one pass over the document. */
export function Questions({ questions, onChange }: { questions: readonly string[]; onChange: (questions: string[]) => void }) {
  const set = (index: number, text: string) => onChange(questions.map((question, number) => (number === index ? text : question)));
  return (
    <div className="stack tight">
      {questions.map((question, index) => (
        <div key={index} className="row question-row">
          <div className="grow">
            <Field label={questions.length > 1 ? `Question ${index + 1}` : "Question"}>
              <textarea rows={2} value={question} placeholder="What do you want to know from the document?" onChange={(event) => set(index, event.target.value)} />
            </Field>
          </div>
          {questions.length > 1 && (
            <button type="button" className="button quiet square" aria-label={`Remove question ${index + 1}`} onClick={() => onChange(questions.filter((_, number) => number !== index))}>
              <Icon name="close" />
            </button>
          )}
        </div>
      ))}
      {questions.length < MOST && (
        <button type="button" className="button small quiet start" onClick={() => onChange([...questions, ""])}>
          Add a question
        </button>
      )}
    </div>
  );
}
