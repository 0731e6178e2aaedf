type Entity = Record<string, unknown>;

/**
 * Keeps the highest version of each versioned entity. Query results and pushed changes use different connections, so
 * an older state can arrive last. Its fields are then replaced by the newer ones.
 */
export function newest() {
  const seen = new Map<string, Entity>();

  function settle(entity: Entity): Entity {
    const { __typename, id, version } = entity as { __typename?: string; id?: string; version?: number };
    if (!__typename || !id || typeof version !== "number") return entity;
    const key = `${__typename}:${id}`;
    const known = seen.get(key);
    if (!known || (known.version as number) <= version) {
      seen.set(key, { ...known, ...entity });
      return entity;
    }
    const merged = { ...entity };
    for (const field of Object.keys(entity)) if (field in known) merged[field] = known[field];
    return merged;
  }

  /** Returns a copy of a result with outdated entities replaced. */
  function apply<T>(value: T): T {
    if (Array.isArray(value)) return value.map(apply) as T;
    if (value === null || typeof value !== "object") return value;
    const copy: Entity = {};
    for (const [field, inner] of Object.entries(value)) copy[field] = apply(inner);
    return settle(copy) as T;
  }

  return apply;
}
