import { useAddress } from "../../address";
import { Audit } from "./Audit";
import { Health } from "./Health";
import { Jobs } from "./Jobs";
import { Keys } from "./Keys";
import { Policy } from "./Policy";
import { Usage } from "./Usage";
import "./operate.css";

const TABS = {
  health: { label: "Health", page: Health },
  usage: { label: "Usage", page: Usage },
  jobs: { label: "Jobs", page: Jobs },
  keys: { label: "Keys", page: Keys },
  policy: { label: "Policy", page: Policy },
  audit: { label: "Audit", page: Audit },
} as const;
type Tab = keyof typeof TABS;

export default function Operate() {
  const [{ tab }, setAddress] = useAddress();
  const shown: Tab = tab && tab in TABS ? (tab as Tab) : "health";
  const Shown = TABS[shown].page;
  return (
    <div className="page">
      <div className="page-head">
        <h1>Operate</h1>
        <div className="segments" role="group" aria-label="Section">
          {(Object.keys(TABS) as Tab[]).map((name) => (
            <button key={name} type="button" className={name === shown ? "segment is-on" : "segment"} aria-pressed={name === shown} onClick={() => setAddress({ tab: name })}>
              {TABS[name].label}
            </button>
          ))}
        </div>
      </div>
      <Shown />
    </div>
  );
}
