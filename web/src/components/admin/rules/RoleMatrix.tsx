import { Checkbox } from "@mantine/core";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { Tick } from "../Tick";
import { type Entity, entities, meant, type Operation, operations, special, state, type Ticks, tick } from "./role";
import { entityName } from "./TrailFilters";

/**
 * The permissions of a role: a row for each kind of object, a column for each operation.
 * Without onChange it is read-only and has only the rows that allow something.
 */
export function RoleMatrix({ ticks, onChange }: { ticks: Ticks; onChange?: (ticks: Ticks) => void }) {
  const rows = onChange ? entities : entities.filter((e) => (ticks[e]?.size ?? 0) > 0);
  const all = (label: string, of: readonly Entity[], ops: readonly Operation[]) => {
    const now = state(ticks, of, ops);
    return (
      <Checkbox
        aria-label={label}
        checked={now === "all"}
        indeterminate={now === "some"}
        onChange={() => onChange?.(of.reduce((sum, e) => tick(sum, e, ops, now !== "all"), ticks))}
      />
    );
  };
  return (
    <div className="scroll-x" tabIndex={0} role="group" aria-label={t("Permissions of the role")}>
      <table className="grid matrix">
        <thead>
          <tr>
            <th scope="col">{t("Object type")}</th>
            {operations.map((op) => (
              <th key={op} scope="col">
                {word("AccessOperation", op)}
              </th>
            ))}
            {onChange ? <th scope="col">{t("all")}</th> : null}
          </tr>
          {onChange ? (
            <tr>
              <th scope="row" className="dim">
                {t("all types")}
              </th>
              {operations.map((op) => (
                <td key={op}>
                  {all(t("{{operation}} on all types", { operation: word("AccessOperation", op) }), entities, [op])}
                </td>
              ))}
              <td>{all(t("everything on all types"), entities, operations)}</td>
            </tr>
          ) : null}
        </thead>
        <tbody>
          {rows.map((e) => (
            <tr key={e}>
              <th scope="row">
                {entityName(e)}
                {special[e] && (onChange || ticks[e]?.has("special")) ? (
                  <span className="dim note"> {t("other: {{what}}", { what: t(special[e]) })}</span>
                ) : null}
              </th>
              {operations.map((op) => {
                const on = ticks[e]?.has(op) ?? false;
                return (
                  <td key={op}>
                    {!onChange ? (
                      <Tick on={on} />
                    ) : meant(e, op) || on ? (
                      <Checkbox
                        aria-label={t("{{operation}} on {{kind}}", {
                          operation: word("AccessOperation", op),
                          kind: entityName(e),
                        })}
                        checked={on}
                        onChange={() => onChange(tick(ticks, e, [op], !on))}
                      />
                    ) : null}
                  </td>
                );
              })}
              {onChange ? <td>{all(t("everything on {{kind}}", { kind: entityName(e) }), [e], operations)}</td> : null}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
