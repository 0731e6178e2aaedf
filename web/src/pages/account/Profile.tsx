import { Memberships } from "../../components/account/Memberships";
import { ProfileForm } from "../../components/account/ProfileForm";
import { ProfileQuery } from "../../components/account/profile";
import { FailureNote } from "../../components/Note";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";

export function Profile() {
  const { data, failure } = useLiveQuery({ query: ProfileQuery });
  const user = data?.viewer.user;
  return (
    <>
      <div className="page-head">
        <h1>{t("Profile")}</h1>
      </div>
      <FailureNote failure={failure} />
      {user ? <ProfileForm key={user.id} user={user} /> : null}
      {user ? <Memberships user={user} /> : null}
    </>
  );
}
