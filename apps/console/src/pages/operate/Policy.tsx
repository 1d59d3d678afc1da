import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState, type FormEvent } from "react";
import { useAddress } from "../../address";
import { api, type Schema } from "../../api";
import { Failure, Field, Rows } from "../../shared";
import { TenantCard } from "./TenantCard";

type Own = Schema["MemoryPolicy"];

const NONE: Own = { categories: [], instructions: "", never: [], redaction: {}, retention: [] };

/** What the tenant's memories keep: instructions to the writer, categories, phrases never kept, ends, redaction. */
export function Policy() {
  const [{ tenant }] = useAddress();
  const policy = useQuery({
    queryKey: ["policy", tenant],
    queryFn: ({ signal }) => api.get("/v1/admin/memory-policy", { query: { tenant }, signal }),
  });
  return (
    <TenantCard title="Memory policy">
      {policy.isPending && <Rows count={5} />}
      {policy.isError && <Failure error={policy.error} onRetry={() => void policy.refetch()} />}
      {policy.data && (
        <>
          <Editor key={JSON.stringify([tenant, policy.data.policy])} tenant={tenant} own={policy.data.policy ?? NONE} isSet={Boolean(policy.data.policy)} />
          <details>
            <summary>In force for the tenant</summary>
            <pre className="text mono">{JSON.stringify(policy.data.effective, null, 2)}</pre>
          </details>
        </>
      )}
    </TenantCard>
  );
}

/** The form begins again when another policy is stored, not when the same one is read again. */
function Editor({ tenant, own, isSet }: { tenant: string | undefined; own: Own; isSet: boolean }) {
  const queries = useQueryClient();
  const [instructions, setInstructions] = useState(own.instructions);
  const [never, setNever] = useState(own.never.join("\n"));
  const onSuccess = () => queries.invalidateQueries({ queryKey: ["policy"] });
  const query = { tenant };
  const save = useMutation({ mutationFn: (body: Own) => api.put("/v1/admin/memory-policy", { query, body }), onSuccess });
  const remove = useMutation({ mutationFn: () => api.delete("/v1/admin/memory-policy", { query }), onSuccess });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate({ ...own, instructions: instructions.trim(), never: phrases(never) });
  };
  return (
    <form className="stack" onSubmit={submit}>
      <Field label="Instructions to the memory writer">
        <textarea rows={4} value={instructions} onChange={(event) => setInstructions(event.target.value)} />
      </Field>
      <Field label="Never keep sentences with (one phrase a line)">
        <textarea rows={4} value={never} spellCheck={false} onChange={(event) => setNever(event.target.value)} />
      </Field>
      <p className="faint">Categories, retention and redaction are set by the API; saving here leaves them as they are.</p>
      {(save.isError || remove.isError) && <Failure small error={save.error ?? remove.error} />}
      <div className="row wrap">
        <button type="submit" className="button primary" disabled={save.isPending}>
          {save.isPending ? "Saving …" : "Save"}
        </button>
        <button type="button" className="button danger" disabled={!isSet || remove.isPending} onClick={() => remove.mutate()}>
          Remove the policy
        </button>
      </div>
    </form>
  );
}

function phrases(text: string): string[] {
  return text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
}
