import { graphql } from "../../api/graphql";
import { PasswordForm } from "../../components/account/PasswordForm";
import { when } from "../../components/format";
import { FailureNote } from "../../components/Note";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";

const PasswordQuery = graphql(`
  query Password { viewer { user { id account { passwordChangedAt } domain { id passwordMaxAgeDays } } } }
`);

const day = 86_400_000;

export function Password() {
  const { data, failure, refetch } = useLiveQuery({ query: PasswordQuery });
  const changed = data?.viewer.user.account?.passwordChangedAt;
  const days = data?.viewer.user.domain.passwordMaxAgeDays ?? 0;
  return (
    <>
      <div className="page-head">
        <h1>{t("Password")}</h1>
        {changed ? <span className="dim">{t("changed {{at}}", { at: when(changed) })}</span> : null}
      </div>
      <FailureNote failure={failure} />
      {changed && days > 0 ? (
        <p>
          {t("Your domain requires a new password every {{count}} days. Change it before {{at}}.", {
            count: days,
            at: when(new Date(Date.parse(changed) + days * day).toISOString()),
          })}
        </p>
      ) : null}
      <section className="panel pad" aria-label={t("Change password")}>
        <div className="narrow">
          <PasswordForm
            offerAll
            onChanged={(all) => {
              toast({
                text: all
                  ? t("Password changed. Other logins, tokens and keys were revoked.")
                  : t("Password changed. All your other logins were revoked."),
              });
              refetch();
            }}
          />
        </div>
      </section>
      <p className="dim">
        {t(
          "A change revokes all your other logins. Access tokens, keypairs and SSH keys stay, unless you revoke them too.",
        )}
      </p>
    </>
  );
}
