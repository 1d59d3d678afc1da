import { useQuery } from "@tanstack/react-query";
import { plain } from "../api";

export interface Entity {
  id: string;
  type: "user" | "agent" | "run";
  memories: number;
}

interface EntityPage {
  results: { id: string; type: Entity["type"]; total_memories: number }[];
}

/** Every user, agent and run of the key's tenant that has memories, each with their number. */
export function useEntities() {
  return useQuery({
    queryKey: ["entities"],
    queryFn: async ({ signal }): Promise<Entity[]> => {
      const page = await plain<EntityPage>("get", "/v1/entities", { signal });
      return page.results.map(({ id, type, total_memories }) => ({ id, type, memories: total_memories }));
    },
  });
}
