import { createRootRoute, createRoute, createRouter, lazyRouteComponent, redirect } from "@tanstack/react-router";
import { Layout } from "./layout/Layout";
import { NotFound, PageError } from "./layout/PageError";

/** What an address may carry, for every page: plain texts, or nothing. */
export type Search = Partial<Record<string, string>>;

/** Addresses hold texts as they are: a user named 42 stays a text. */
export function parseSearch(text: string): Search {
  return Object.fromEntries(new URLSearchParams(text));
}

export function writtenSearch(search: Record<string, unknown>): string {
  const given = Object.entries(search).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const text = new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
}

const validateSearch = (search: Record<string, unknown>): Search => search as Search;

const root = createRootRoute({ component: Layout, notFoundComponent: NotFound, validateSearch });
const start = createRoute({
  getParentRoute: () => root,
  path: "/",
  beforeLoad: () => {
    throw redirect({ to: "/memories", replace: true });
  },
});

function page<const P extends string>(path: P, load: () => Promise<{ default: () => React.ReactNode }>) {
  return createRoute({ getParentRoute: () => root, path, component: lazyRouteComponent(load), errorComponent: PageError });
}

const routeTree = root.addChildren([
  start,
  page("/memories", () => import("./pages/memories")),
  page("/decisions", () => import("./pages/decisions")),
  page("/read", () => import("./pages/read")),
  page("/chat", () => import("./pages/chat")),
  page("/operate", () => import("./pages/operate")),
]);

export function newRouter() {
  return createRouter({
    routeTree,
    basepath: new URL(document.baseURI).pathname,
    parseSearch,
    stringifySearch: writtenSearch,
    defaultPreload: "intent",
    scrollRestoration: false,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof newRouter>;
  }
}
