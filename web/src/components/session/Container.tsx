import { t } from "../../i18n";
import { slotName } from "../../slots";
import { word } from "../../words";
import { amount, when } from "../format";
import type { SessionDetail } from "./session";

type Kernel = SessionDetail["kernels"][number];

/**
 * Shows one container: its devices, GPUDirect, and the environment variables that programs on several containers read.
 */
export function Container({ kernel: k }: { kernel: Kernel }) {
  const variables = Object.entries(k.variables).sort(([a], [b]) => (a < b ? -1 : 1));
  return (
    <div>
      <h3>
        {t("Container {{name}}", { name: k.hostname || String(k.index) })}{" "}
        <span className="dim">{k.agent ? t("on {{machine}}", { machine: k.agent.name }) : null}</span>
      </h3>
      <ul style={{ margin: "4px 0 0", paddingLeft: 18 }}>
        {k.allocations.map((a) => (
          <li key={a.id} className={a.freedAt ? "dim" : ""}>
            {slotName(a.slot)} {amount(a.slot, a.amount)}
            {a.device ? ` ${t("of")} ${a.device.deviceId} ${a.device.model}` : null}
            {a.freedAt ? ` (${t("released")} ${when(a.freedAt)})` : null}
          </li>
        ))}
        {k.gpuDirect.map((g) => (
          <li key={g.feature}>
            {word("GPUDirectFeature", g.feature)}: {g.available ? t("available") : t("not available")}
            {g.reason ? <span className="dim"> ({g.reason})</span> : null}
          </li>
        ))}
      </ul>
      {variables.length > 0 ? (
        <details>
          <summary>{t("Variables for programs over several containers or accelerators")}</summary>
          <div className="stack small">
            {variables.map(([name, value]) => (
              <code key={name}>
                {name}={value}
              </code>
            ))}
          </div>
        </details>
      ) : null}
    </div>
  );
}
