import { Link, Outlet, useRouterState } from "@tanstack/react-router";
import { Suspense, useEffect, useRef } from "react";
import { useAddress } from "../address";
import { Loading } from "../shared";
import { Icon, type IconName } from "./Icon";
import { KeyButton } from "./KeyButton";
import { StackState } from "./StackState";
import { ThemeSwitch } from "./ThemeSwitch";

const PAGES: readonly { to: "/memories" | "/decisions" | "/read" | "/chat" | "/operate"; label: string; icon: IconName }[] = [
  { to: "/memories", label: "Memories", icon: "memories" },
  { to: "/decisions", label: "Decisions", icon: "decisions" },
  { to: "/read", label: "Read", icon: "read" },
  { to: "/chat", label: "Chat", icon: "chat" },
  { to: "/operate", label: "Operate", icon: "operate" },
];

export function Layout() {
  const main = useRef<HTMLElement>(null);
  const [{ user }] = useAddress();
  useTitle();
  return (
    <div className="layout">
      <button type="button" className="skip" onClick={() => main.current?.focus()}>
        Skip to the page
      </button>
      <header className="bar">
        <Link to="/memories" className="brand" aria-label="Memloop console">
          <img src="./icon.svg" alt="" width="24" height="24" />
          <span>Memloop</span>
        </Link>
        <nav className="nav" aria-label="Pages">
          {PAGES.map(({ to, label, icon }) => (
            <Link key={to} to={to} search={user ? { user } : {}} className="nav-link" activeOptions={{ includeSearch: false }} activeProps={{ className: "is-active" }}>
              <Icon name={icon} />
              <span>{label}</span>
            </Link>
          ))}
        </nav>
        <div className="bar-end">
          <StackState />
          <ThemeSwitch />
          <KeyButton />
        </div>
      </header>
      <main ref={main} tabIndex={-1} className="main">
        <Suspense fallback={<Loading what="the page" />}>
          <Outlet />
        </Suspense>
      </main>
    </div>
  );
}

function useTitle(): void {
  const path = useRouterState({ select: (state) => state.location.pathname });
  useEffect(() => {
    const page = PAGES.find(({ to }) => path.endsWith(to));
    document.title = page ? `${page.label} · Memloop` : "Memloop";
  }, [path]);
}
