import { initGraphQLTada } from "gql.tada";
import type { introspection } from "./schema";

/** Amounts per slot, as decimal strings. */
export type Slots = Record<string, string>;

export const graphql = initGraphQLTada<{
  introspection: introspection;
  disableMasking: true;
  scalars: {
    Time: string;
    Int64: number;
    Slots: Slots;
    StringMap: Record<string, string>;
    Cursor: string;
  };
}>();

export type { FragmentOf, ResultOf, VariablesOf } from "gql.tada";
