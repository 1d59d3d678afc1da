import { useMutation } from "@tanstack/react-query";
import { useState, type FormEvent, type ReactNode } from "react";
import { api } from "../../api";
import { Dialog, Failure, Field } from "../../shared";
import type { ApiKey } from "./Keys";

type Scope = ApiKey["scopes"][number];

const SCOPES: readonly Scope[] = ["chat", "memory:read", "memory:write", "long-read", "admin"];
const DAY_S = 86_400;
const LIVES: readonly [number, string][] = [
  [0, "Never"],
  [DAY_S, "In a day"],
  [30 * DAY_S, "In 30 days"],
  [365 * DAY_S, "In a year"],
];
const OVERLAPS: readonly [number, string][] = [
  [0, "Not at all"],
  [3600, "An hour"],
  [DAY_S, "A day"],
  [7 * DAY_S, "A week"],
  [30 * DAY_S, "30 days"],
];

interface Props {
  onMade: (secret: string) => void;
  onClose: () => void;
}

export function NewKey({ tenant, onMade, onClose }: Props & { tenant: string | undefined }) {
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<ReadonlySet<Scope>>(new Set(SCOPES.filter((scope) => scope !== "admin")));
  const [livesS, setLivesS] = useState(0);
  const make = useMutation({
    mutationFn: () => {
      const expiry = livesS > 0 && { expires_at: Math.floor(Date.now() / 1000) + livesS };
      return api.post("/v1/admin/keys", { body: { name: name.trim(), scopes: [...scopes], ...expiry, ...(tenant && { tenant }) } });
    },
    onSuccess: ({ secret }) => onMade(secret),
  });
  const toggle = (scope: Scope) => setScopes((now) => new Set(SCOPES.filter((one) => (one === scope ? !now.has(one) : now.has(one)))));
  return (
    <KeyForm title={tenant ? `New key for ${tenant}` : "New key"} submit="Make the key" isReady={name.trim() !== "" && scopes.size > 0} mutation={make} onClose={onClose}>
      <Field label="Name">
        <input value={name} maxLength={128} autoComplete="off" onChange={(event) => setName(event.target.value)} />
      </Field>
      <fieldset className="scopes">
        <legend className="field-label">Scopes</legend>
        {SCOPES.map((scope) => (
          <label key={scope} className="check">
            <input type="checkbox" checked={scopes.has(scope)} onChange={() => toggle(scope)} />
            {scope}
          </label>
        ))}
      </fieldset>
      <Choice label="Expires" value={livesS} choices={LIVES} onChange={setLivesS} />
    </KeyForm>
  );
}

export function RotateKey({ apiKey, onMade, onClose }: Props & { apiKey: ApiKey }) {
  const [overlapS, setOverlapS] = useState(0);
  const rotate = useMutation({
    mutationFn: () => api.post("/v1/admin/keys/{key_id}/rotate", { path: { key_id: apiKey.id }, body: { overlap_s: overlapS } }),
    onSuccess: ({ secret }) => onMade(secret),
  });
  return (
    <KeyForm title="Rotate the secret" submit="Rotate" isReady mutation={rotate} onClose={onClose}>
      <p className="text">
        The key <strong>{apiKey.name}</strong> gets a new secret.
      </p>
      <Choice label="The old secret works for" value={overlapS} choices={OVERLAPS} onChange={setOverlapS} />
    </KeyForm>
  );
}

interface FormProps {
  title: string;
  submit: string;
  isReady: boolean;
  mutation: { mutate: () => void; isPending: boolean; isError: boolean; error: unknown };
  onClose: () => void;
  children: ReactNode;
}

function KeyForm({ title, submit, isReady, mutation, onClose, children }: FormProps) {
  const save = (event: FormEvent) => {
    event.preventDefault();
    if (isReady && !mutation.isPending) mutation.mutate();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form className="stack" onSubmit={save}>
        {children}
        {mutation.isError && <Failure error={mutation.error} small />}
        <div className="row end">
          <button type="submit" className="button primary" disabled={!isReady || mutation.isPending}>
            {submit}
          </button>
        </div>
      </form>
    </Dialog>
  );
}

function Choice({ label, value, choices, onChange }: { label: string; value: number; choices: readonly [number, string][]; onChange: (value: number) => void }) {
  return (
    <Field label={label}>
      <select value={value} onChange={(event) => onChange(Number(event.target.value))}>
        {choices.map(([seconds, name]) => (
          <option key={seconds} value={seconds}>
            {name}
          </option>
        ))}
      </select>
    </Field>
  );
}

/** A new secret, which no later request returns. */
export function SecretDialog({ secret, onClose }: { secret: string; onClose: () => void }) {
  const [isCopied, setIsCopied] = useState(false);
  const copy = () => void navigator.clipboard.writeText(secret).then(() => setIsCopied(true));
  return (
    <Dialog title="The key's secret" onClose={onClose}>
      <p>Copy it now. It is shown this once.</p>
      <input readOnly aria-label="Secret" className="mono" value={secret} onFocus={(event) => event.target.select()} />
      <div className="row end">
        <button type="button" className="button" onClick={copy}>
          {isCopied ? "Copied" : "Copy"}
        </button>
        <button type="button" className="button primary" onClick={onClose}>
          I have it
        </button>
      </div>
    </Dialog>
  );
}
