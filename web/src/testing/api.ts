import { readFileSync } from "node:fs";
import {
  buildSchema,
  defaultFieldResolver,
  execute,
  type GraphQLFieldResolver,
  type GraphQLOutputType,
  isEnumType,
  isLeafType,
  isListType,
  isNonNullType,
} from "graphql";
import { Client, type Exchange, makeResult, type Operation } from "urql";
import { filter, fromPromise, makeSubject, merge, mergeMap, pipe, share } from "wonka";
import { cache } from "../api/client";

const schema = buildSchema(readFileSync("../schema.graphql", "utf8"));

let made = 0;

/** Returns a default value of a type, for fields that a test does not set. */
function anything(type: GraphQLOutputType): unknown {
  if (!isNonNullType(type)) return null;
  const inner = type.ofType;
  if (isListType(inner)) return [];
  if (isEnumType(inner)) return inner.getValues()[0]?.value;
  if (!isLeafType(inner)) return {};
  return (
    { ID: `id-${++made}`, Int: 0, Int64: 0, Float: 0, Boolean: false, Time: "2026-01-02T03:04:05Z" }[inner.name] ?? ""
  );
}

const resolve: GraphQLFieldResolver<unknown, unknown> = (source, args, context, info) =>
  defaultFieldResolver(source, args, context, info) ?? anything(info.returnType);

/** Results by field of the root types: a value, or a function of the arguments that can throw a GraphQLError. */
export type Answers = Record<string, unknown>;

/**
 * Simulates the manager: it validates the requests of components against the schema, answers them, and pushes to
 * subscriptions.
 */
export class FakeApi {
  /** The names and variables of all operations that were sent. */
  readonly asked: { name: string; variables: Record<string, unknown> }[] = [];
  private readonly feeds = new Set<{ operation: Operation; next: (data: unknown) => void }>();
  readonly client: Client;

  constructor(public answers: Answers) {
    this.client = new Client({
      url: "http://manager.test/graphql",
      requestPolicy: "cache-and-network",
      preferGetMethod: false,
      exchanges: [cache, this.exchange],
    });
  }

  /** Returns the variables of all operations with a name. */
  sent(name: string): Record<string, unknown>[] {
    return this.asked.filter((a) => a.name === name).map((a) => a.variables);
  }

  /** Pushes a value to all subscriptions of a field. */
  async push(field: string, value: unknown) {
    for (const { operation, next } of this.feeds) {
      const result = await this.run(operation, { [field]: value });
      if (!result.errors) next(result.data);
    }
  }

  private async run(operation: Operation, rootValue: Answers) {
    return execute({
      schema,
      document: operation.query,
      rootValue,
      variableValues: operation.variables ?? {},
      fieldResolver: resolve,
    });
  }

  private readonly exchange: Exchange = () => (operations) => {
    const all = pipe(
      operations,
      filter((o) => o.kind !== "teardown"),
      share,
    );
    const answered = pipe(
      all,
      filter((o) => o.kind !== "subscription"),
      mergeMap((o) => fromPromise(this.answer(o))),
    );
    const pushed = pipe(
      all,
      filter((o) => o.kind === "subscription"),
      mergeMap((operation) => {
        const { source, next } = makeSubject<ReturnType<typeof makeResult>>();
        this.feeds.add({ operation, next: (data) => next(makeResult(operation, { data } as never, true)) });
        return source;
      }),
    );
    return merge([answered, pushed]);
  };

  private async answer(operation: Operation) {
    const [definition] = operation.query.definitions;
    const name = definition?.kind === "OperationDefinition" ? (definition.name?.value ?? "") : "";
    this.asked.push({ name, variables: (operation.variables ?? {}) as Record<string, unknown> });
    const result = await this.run(operation, this.answers);
    return makeResult(operation, JSON.parse(JSON.stringify(result)) as never);
  }
}

/** Returns a connection with the given nodes. */
export const list = (nodes: readonly object[]) => ({
  totalCount: nodes.length,
  edges: nodes.map((node) => ({ node, cursor: "" })),
  pageInfo: { hasNextPage: false, hasPreviousPage: false },
});
