import { graphql, type ResultOf } from "../api/graphql";
import { useLiveQuery } from "./useLiveQuery";

const SlotTypesQuery = graphql(`query SlotTypes { slotTypes { id name displayName unit icon } }`);

export type SlotType = ResultOf<typeof SlotTypesQuery>["slotTypes"][number];

/** Returns the slot types by slot, with their display names. */
export function useSlotTypes(): ReadonlyMap<string, SlotType> {
  const { data } = useLiveQuery({ query: SlotTypesQuery });
  return new Map((data?.slotTypes ?? []).map((s) => [s.name, s]));
}
