import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { onApiKey } from "./api";
import { applyTheme } from "./layout/theme";
import { newQueryClient } from "./queries";
import { newRouter } from "./router";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/layout.css";
import "./styles/shared.css";

applyTheme();
const queries = newQueryClient();
onApiKey(() => void queries.resetQueries());

const root = document.getElementById("root");
if (root) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <RouterProvider router={newRouter()} />
      </QueryClientProvider>
    </StrictMode>,
  );
}
