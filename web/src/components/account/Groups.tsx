import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { typeWords } from "../../words";
import { nodesOf } from "../admin/usePages";
import { FailureNote } from "../Note";

const MyGroupsQuery = graphql(`
  query MyGroups {
    resourceGroupAccess(first: 100) {
      totalCount edges { node { via resourceGroup { id name description sessionTypes } } }
    }
  }
`);

/** Why a user can use a group. */
const reasons: Record<string, string> = {
  SUPERADMIN: "to superadmins",
  PUBLIC: "to everyone",
  DOMAIN: "to your domain",
  PROJECT: "to one of your projects",
  USER: "to you",
  KEYPAIR: "to requests with one of your keypairs",
};

/** Shows the resource groups that the viewer can use, and why. */
export function Groups() {
  const { data, failure } = useLiveQuery({ query: MyGroupsQuery });
  const list = nodesOf(data?.resourceGroupAccess);
  return (
    <section className="panel" aria-labelledby="groups">
      <div className="panel-head">
        <h2 id="groups">{t("My resource groups")}</h2>
        <span className="dim">{t("where your sessions can start")}</span>
      </div>
      <FailureNote failure={failure} />
      {data && list.length === 0 ? (
        <p className="body dim">{t("No resource group is open to you. Ask an administrator for access.")}</p>
      ) : null}
      <ul className="rows">
        {list.map(({ resourceGroup: g, via }) =>
          g ? (
            <li key={g.id}>
              <div className="entry">
                <div>
                  <b>{g.name}</b> <span className="dim">{g.description}</span>
                </div>
                <div className="dim">
                  {t("open {{reasons}}", { reasons: via.map((v) => t(reasons[v] ?? v)).join(", ") })} ·{" "}
                  {t("for {{types}} sessions", { types: typeWords(g.sessionTypes).join(", ") })}
                </div>
              </div>
            </li>
          ) : null,
        )}
      </ul>
      {data && data.resourceGroupAccess.totalCount > list.length ? (
        <p className="body dim">
          {t("Showing {{n}} of {{total}}.", { n: list.length, total: data.resourceGroupAccess.totalCount })}
        </p>
      ) : null}
    </section>
  );
}
