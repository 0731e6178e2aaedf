import type { CombinedError } from "@urql/core";

/** What any failed call says, whichever way it travelled. */
export interface Failure {
  code: string;
  message: string;
  /** The input field at fault, when one is. */
  field?: string;
  /** The limit that was reached, when one was. */
  limit?: string;
  requestId?: string;
  /** Seconds until another try may succeed. */
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

/** Reads problem JSON (RFC 9457); other bodies become a plain sentence. */
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
    // Not JSON: the status says enough.
  }
  return failure;
}

/** Puts failures beside the inputs that they name; the rest stays above the form. */
export function byField(failure: Failure | null, fields: readonly string[]) {
  if (!failure) return { field: {} as Record<string, string>, rest: null };
  // The server names nested input as slots.cpu or input.slots.cpu.
  const path = (failure.field ?? "").replace(/^input\./, "");
  const hit =
    fields.find((f) => path === f) ?? fields.find((f) => path.startsWith(`${f}.`) || path.startsWith(`${f}[`));
  if (!hit) return { field: {} as Record<string, string>, rest: failure };
  // Most sentences name the limit themselves.
  const message =
    failure.limit && !failure.message.includes(failure.limit)
      ? `${failure.message} (${failure.limit})`
      : failure.message;
  return { field: { [hit]: message } as Record<string, string>, rest: null };
}
