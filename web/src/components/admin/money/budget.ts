import { graphql, type ResultOf } from "../../../api/graphql";

export const BudgetParts = graphql(`
  fragment BudgetParts on Budget @_unmask {
    id period startsAt endsAt timeZone soft hard atHard
    domain { id name } project { id name } user { id email }
    status { from to spent promised perDay softReachedAt hardReachedAt }
  }
`);

export type Budget = ResultOf<typeof BudgetParts>;
