import type { CombinedError } from "@urql/core";

/** The error of a failed call, over any transport. */
export interface Failure {
  code: string;
  message: string;
  /** The invalid input field, if the error is about one. */
  field?: string;
  /** The limit that was reached, if the error is about one. */
  limit?: string;
  requestId?: string;
  /** Seconds to wait before a retry. */
  retryAfter?: number;
}

interface Extensions {
  code?: string;
  field?: string;
  limit?: unknown;
  requestId?: string;
}

const text = (value: unknown) =>
  value === undefined || value === null ? undefined : typeof value === "string" ? value : JSON.stringify(value);

export function fromGraphQL(error: CombinedError): Failure {
  const first = error.graphQLErrors[0];
  if (first) {
    const more = (first.extensions ?? {}) as Extensions;
    return {
      code: more.code ?? "INTERNAL",
      message: first.message,
      field: more.field,
      limit: text(more.limit),
      requestId: more.requestId ?? requestId(error),
    };
  }
  const status = (error.response as Response | undefined)?.status;
  return {
    code: status === 401 ? "UNAUTHENTICATED" : "UNAVAILABLE",
    message: error.networkError?.message ?? error.message,
    requestId: requestId(error),
  };
}

function requestId(error: CombinedError) {
  const headers = (error.response as Response | undefined)?.headers;
  return headers?.get("X-Request-Id") ?? undefined;
}

/** Reads problem JSON (RFC 9457). For any other body, the HTTP status is the message. */
export async function fromResponse(response: Response): Promise<Failure> {
  const retry = Number(response.headers.get("Retry-After"));
  const failure: Failure = {
    code: response.status === 401 ? "UNAUTHENTICATED" : `HTTP ${response.status}`,
    message: response.statusText || `HTTP ${response.status}`,
    requestId: response.headers.get("X-Request-Id") ?? undefined,
    retryAfter: Number.isFinite(retry) && retry > 0 ? retry : undefined,
  };
  try {
    const problem = (await response.json()) as Extensions & { detail?: string; title?: string };
    failure.message = problem.detail || problem.title || failure.message;
    failure.code = problem.code ?? failure.code;
    failure.field = problem.field;
    failure.limit = text(problem.limit);
    failure.requestId = problem.requestId ?? failure.requestId;
  } catch {
    // The body is not JSON: the HTTP status is the message.
  }
  return failure;
}

/** Splits a failure into messages by input field and a message for the whole form. */
export function byField(failure: Failure | null, fields: readonly string[]) {
  if (!failure) return { field: {} as Record<string, string>, rest: null };
  // The server names nested input as slots.cpu or input.slots.cpu.
  const path = (failure.field ?? "").replace(/^input\./, "");
  const hit =
    fields.find((f) => path === f) ?? fields.find((f) => path.startsWith(`${f}.`) || path.startsWith(`${f}[`));
  if (!hit) return { field: {} as Record<string, string>, rest: failure };
  // Most messages contain the limit already.
  const message =
    failure.limit && !failure.message.includes(failure.limit)
      ? `${failure.message} (${failure.limit})`
      : failure.message;
  return { field: { [hit]: message } as Record<string, string>, rest: null };
}
