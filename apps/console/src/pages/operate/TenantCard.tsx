import { useId, type ReactNode } from "react";
import { TenantField } from "./TenantField";

/** A card about one tenant: its name, the choice of the tenant, and more controls beside it. */
export function TenantCard({ title, controls, children }: { title: string; controls?: ReactNode; children: ReactNode }) {
  const id = useId();
  return (
    <section className="card stack operate-card" aria-labelledby={id}>
      <div className="row between wrap">
        <h2 id={id}>{title}</h2>
        <div className="row wrap">
          <TenantField />
          {controls}
        </div>
      </div>
      {children}
    </section>
  );
}
