import { useQuery } from "urql";
import { graphql } from "../api/graphql";

const CurrencyQuery = graphql(`query Currency { server { currency } }`);

/** Returns the currency of prices and budgets; empty until it is known. */
export function useCurrency(): string {
  const [{ data }] = useQuery({ query: CurrencyQuery });
  return data?.server.currency ?? "";
}
