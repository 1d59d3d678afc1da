import { useState, type FormEvent } from "react";
import { useAddress } from "../../address";

/** Which tenant to manage; only an operator's key may name another than its own. */
export function TenantField() {
  const [{ tenant }, setAddress] = useAddress();
  const [text, setText] = useState(tenant ?? "");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setAddress({ tenant: text.trim() || undefined } as Record<string, undefined>);
  };
  return (
    <form onSubmit={submit}>
      <input aria-label="Tenant" placeholder="Tenant of the key" className="tenant" value={text} maxLength={64} autoComplete="off" spellCheck={false} onChange={(event) => setText(event.target.value)} onBlur={submit} />
    </form>
  );
}
