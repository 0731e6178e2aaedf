import { Checkbox } from "@mantine/core";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { Tick } from "../Tick";
import { type Entity, entities, general, type Operation, operationsOf, own, state, type Ticks, tick } from "./role";
import { entityName } from "./TrailFilters";

/**
 * The permissions of a role: a row for each kind of object, a column for each operation
 * that every kind has, and a column for operations that only some kinds have.
 * Without onChange it is read-only and has only the rows that allow something.
 */
export function RoleMatrix({ ticks, onChange }: { ticks: Ticks; onChange?: (ticks: Ticks) => void }) {
  const rows = onChange ? entities : entities.filter((e) => (ticks[e]?.size ?? 0) > 0);
  const all = (label: string, of: readonly Entity[], ops: (entity: Entity) => readonly Operation[]) => {
    const now = state(ticks, of, ops);
    return (
      <Checkbox
        aria-label={label}
        checked={now === "all"}
        indeterminate={now === "some"}
        onChange={() => onChange?.(of.reduce((sum, e) => tick(sum, e, ops(e), now !== "all"), ticks))}
      />
    );
  };
  const one = (e: Entity, op: Operation, label?: string) => {
    const on = ticks[e]?.has(op) ?? false;
    return (
      <Checkbox
        key={op}
        label={label}
        aria-label={t("{{operation}} on {{kind}}", { operation: word("AccessOperation", op), kind: entityName(e) })}
        checked={on}
        onChange={() => onChange?.(tick(ticks, e, [op], !on))}
      />
    );
  };
  return (
    <div className="scroll-x" tabIndex={0} role="group" aria-label={t("Permissions of the role")}>
      <table className="grid matrix">
        <thead>
          <tr>
            <th scope="col">{t("Object type")}</th>
            {general.map((op) => (
              <th key={op} scope="col">
                {word("AccessOperation", op)}
              </th>
            ))}
            <th scope="col">{t("more")}</th>
            {onChange ? <th scope="col">{t("all")}</th> : null}
          </tr>
          {onChange ? (
            <tr>
              <th scope="row" className="dim">
                {t("all types")}
              </th>
              {general.map((op) => (
                <td key={op}>
                  {all(t("{{operation}} on all types", { operation: word("AccessOperation", op) }), entities, () => [
                    op,
                  ])}
                </td>
              ))}
              <td />
              <td>{all(t("everything on all types"), entities, operationsOf)}</td>
            </tr>
          ) : null}
        </thead>
        <tbody>
          {rows.map((e) => (
            <tr key={e}>
              <th scope="row">{entityName(e)}</th>
              {general.map((op) => (
                <td key={op}>{onChange ? one(e, op) : <Tick on={ticks[e]?.has(op) ?? false} />}</td>
              ))}
              <td>
                {onChange
                  ? own[e]?.map((op) => one(e, op, word("AccessOperation", op)))
                  : own[e]
                      ?.filter((op) => ticks[e]?.has(op))
                      .map((op) => word("AccessOperation", op))
                      .join(", ")}
              </td>
              {onChange ? (
                <td>{all(t("everything on {{kind}}", { kind: entityName(e) }), [e], operationsOf)}</td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
