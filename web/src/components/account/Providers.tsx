import { Button } from "@mantine/core";
import { useQuery } from "urql";
import { graphql } from "../../api/graphql";
import { t } from "../../i18n";

const LoginProvidersQuery = graphql(`query LoginProviders { loginProviders { name displayName } }`);

/** Shows links to identity providers. With `force`, the oldest login is revoked first. */
export function Providers({ next, force }: { next: string; force?: boolean }) {
  const [{ data }] = useQuery({ query: LoginProvidersQuery });
  const list = data?.loginProviders ?? [];
  if (list.length === 0) return null;
  return (
    <div className="stack">
      <div className="or">{t("or")}</div>
      {list.map((p) => (
        <Button
          key={p.name}
          component="a"
          variant="default"
          size="sm"
          href={`/auth/oidc/${encodeURIComponent(p.name)}/start?return=${encodeURIComponent(next)}${force ? "&force=true" : ""}`}
        >
          {t(force ? "Revoke the oldest login and log in with {{name}}" : "Log in with {{name}}", {
            name: p.displayName || p.name,
          })}
        </Button>
      ))}
    </div>
  );
}
